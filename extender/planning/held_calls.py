"""The calls by which kube-scheduler asks to bind pods: those that are held, those under way.

A call is held until the planner has decided about its gang. From that moment on its pod counts as
being bound, so that its lease cannot end before the binding is sent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from extender.defaults import HOLD_SECONDS
from extender.planning.pending_writes import PendingWrites
from extender.queue.held_bindings import Verdict
from policy.errors import RequestError
from policy.submission import PodUid


@dataclass(slots=True, kw_only=True)
class _Call:
    answer: asyncio.Future[Verdict]
    is_open: Callable[[], bool]


class HeldCalls:
    """The bind calls that have no verdict yet, and the pods that are being bound."""

    def __init__(
        self,
        pending: PendingWrites,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        longest_seconds: float = HOLD_SECONDS,
    ) -> None:
        """`is_stopping` tells whether this process was asked to end."""
        self._pending = pending
        self.is_stopping = is_stopping
        self.longest_seconds = longest_seconds
        self._calls: dict[PodUid, _Call] = {}
        self.under_way: Counter[PodUid] = Counter()
        """Pods that are being bound at this moment, perhaps by several callers."""

    def is_open(self, uid: PodUid) -> bool:
        """Tell whether kube-scheduler still waits for the answer about a pod."""
        call = self._calls.get(uid)
        return call is not None and call.is_open()

    @asynccontextmanager
    async def asked(
        self, uid: PodUid, *, is_open: Callable[[], bool], ask: Callable[[], None]
    ) -> AsyncIterator[Verdict]:
        """Ask for a verdict about a pod, and wait for it, and for a write to the pod.

        A pod that may be bound counts as being bound until the context ends.
        """
        call = _Call(answer=asyncio.get_running_loop().create_future(), is_open=is_open)
        self._supersede(uid)
        self._calls[uid] = call
        try:
            ask()
            verdict = await call.answer
            await self._pending.wait(uid)
            yield verdict
        finally:
            self._close(uid, call)

    def _supersede(self, uid: PodUid) -> None:
        """End an earlier call about a pod: kube-scheduler does not wait for its answer any more."""
        before = self._calls.pop(uid, None)
        if before is not None and not before.answer.done():
            why = "kube-scheduler has asked again about this pod"
            before.answer.set_exception(RequestError.at("PodUID", why))

    def _close(self, uid: PodUid, call: _Call) -> None:
        if self._calls.get(uid) is call:
            del self._calls[uid]
        if not _may_bind(call.answer):
            return
        self.under_way[uid] -= 1
        if not self.under_way[uid]:
            del self.under_way[uid]

    def deliver(self, verdicts: Mapping[PodUid, Verdict]) -> None:
        """Answer calls; pods that may be bound count as being bound from here on."""
        for uid, verdict in verdicts.items():
            call = self._calls.pop(uid, None)
            if call is None or call.answer.done():
                continue
            call.answer.set_result(verdict)
            if verdict.given_up is None:
                self.under_way[uid] += 1


def _may_bind(answer: asyncio.Future[Verdict]) -> bool:
    is_given = answer.done() and not answer.cancelled() and answer.exception() is None
    return is_given and answer.result().given_up is None
