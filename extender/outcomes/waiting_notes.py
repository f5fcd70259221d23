"""Says on gated pods and their workloads why they wait.

Every gated member of a waiting gang carries the sentence in the message of its `PodScheduled`
condition; its reason stays `SchedulingGated`. The sentence has no numbers that change while the
gang waits, so that it is written once for each reason. One member and the workload get an Event,
which is repeated, because Events expire. Gangs that wait for moments only get no condition.
"""

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, NoReturn, Protocol

from extender.cells.lasting_sentences import lasting_text
from extender.cells.model import Reason, ReasonCode
from extender.feeds.pod_feed import PodSink
from extender.metrics import ExtenderMetrics
from extender.outcomes.pod_events import PodEvents
from extender.outcomes.waiting_list import WaitingEntry, WaitingList
from kube.api.binder import PodRef
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError
from policy.submission import PodUid
from service.clock import Clock
from service.memory import BoundedMap

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_PER_ROUND: Final = 50
"""Conditions that are written in a second at most: waiting must not slow down starting."""
_AT_ONCE: Final = 8
_PATIENCE_SECONDS: Final = 3.0
"""How long a gang waits before its pods are written to: most gangs start at once."""
_AGAIN_SECONDS: Final = 15.0
"""How long another reason must last, where a pod states one already; also after a failed write."""
_REPEAT_SECONDS: Final = 1800.0
"""How often an Event is repeated: the API server drops Events after an hour."""
_LOOK_SECONDS: Final = 60.0
_MOST_WORKLOADS: Final = 100_000
_MESSAGE_CHARS: Final = 1024
_OF_KUBERNETES: Final = "Scheduling is blocked due to non-empty scheduling gates"
"""What the API server says about every gated pod."""

Writing = Callable[[PodUid], AbstractContextManager[None]]


class WriteMessages(Protocol):
    """What the notes need of Kubernetes."""

    async def write(self, pod: PodRef, message: str) -> str:
        """Write why a gated pod waits; return its new version. BackendError if that failed."""


class WaitingNotes:
    """Keeps the conditions and the Events of waiting gangs up to date, while this replica leads."""

    def __init__(
        self,
        *,
        waiting: WaitingList,
        pods: PodSink,
        has_place: Callable[[PodUid], bool],
        events: PodEvents,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._waiting = waiting
        self._pods = pods
        self._has_place = has_place
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._due: dict[PodUid, float] = {}
        """Pods whose condition may have to be written, and when."""
        self._workloads: BoundedMap[tuple[str, ReasonCode], float] = BoundedMap(_MOST_WORKLOADS)
        """When a workload got its last Event for a reason: it may have many gangs."""
        self._look_at = 0.0
        pods.on_change.append(self._note)
        pods.helpers.on_change.append(self._note)

    # -- what happens

    def gang_waits(self, entry: WaitingEntry) -> None:
        """A gang waits, or for another reason than before."""
        if self._is_told_already(entry):
            self._count_as_told(entry)
        else:
            self._tell(entry, entry.reason.text)
        self.refresh(entry)

    def renew(self, entry: WaitingEntry, reason: Reason) -> None:
        """The numbers of a reason have changed; the lasting sentence rarely changes with them."""
        said = _message(entry)
        entry.reason = reason
        if _message(entry) != said:
            self.refresh(entry)

    def refresh(self, entry: WaitingEntry) -> None:
        """Compare what the members of a gang say with why it waits."""
        for pod in self._members(entry):
            self._note(pod)

    def _is_told_already(self, entry: WaitingEntry) -> bool:
        """Whether an earlier leader has told the pod the same."""
        said = entry.pod.gate_message
        return bool(said) and said == _message(entry)

    def _count_as_told(self, entry: WaitingEntry) -> None:
        """Spread the Events of the gangs that an earlier leader has told over half an hour."""
        share = zlib.crc32(str(entry.gang).encode()) % 1000 / 1000
        entry.told[entry.reason.code] = self._clock.monotonic() - share * _REPEAT_SECONDS

    def _note(self, pod: ManagedPod) -> None:
        """Write on a pod later if it does not say why it waits."""
        entry = self._waiting.of_pod(pod) if pod.is_gated else None
        if entry is None:
            self._due.pop(pod.uid, None)
        elif pod.uid not in self._due and pod.gate_message != _message(entry):
            is_first = pod.gate_message in (None, "", _OF_KUBERNETES)
            patience = _PATIENCE_SECONDS if is_first else _AGAIN_SECONDS
            self._due[pod.uid] = self._clock.monotonic() + patience

    # -- Events

    def _tell(self, entry: WaitingEntry, why: str) -> None:
        """Write the Events, unless they were written for this reason within half an hour."""
        now, code = self._clock.monotonic(), entry.reason.code
        if now - entry.told.get(code, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        entry.told[code] = now
        self._events.waiting(entry.pod, why)
        workload = entry.pod.workload
        if workload is None or self._is_recent(now, self._workloads.get((workload.uid, code))):
            return
        self._workloads[workload.uid, code] = now
        self._events.workload_waits(workload, namespace=entry.pod.namespace, why=why)

    @staticmethod
    def _is_recent(now: float, told: float | None) -> bool:
        return told is not None and now - told < _REPEAT_SECONDS

    def repeat_events(self) -> None:
        """Repeat the Events that would expire soon."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        for entry in self._waiting.gangs.values():
            self._tell(entry, _message(entry))

    # -- conditions

    async def run(self, writer: WriteMessages, *, writing: Writing) -> NoReturn:
        """Write conditions and repeat Events, until cancelled.

        `writing` notes that a pod is being written to, for as long as its context lasts.
        """
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            self.repeat_events()
            await self.write_due(writer, writing=writing)

    async def write_due(self, writer: WriteMessages, *, writing: Writing) -> None:
        """Write the conditions that are due, a bounded number of them."""
        now = self._clock.monotonic()
        due = [uid for uid, at in self._due.items() if at <= now][:_PER_ROUND]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def write(uid: PodUid) -> None:
            async with slots:
                await self._write(uid, writer, writing=writing)

        await asyncio.gather(*map(write, due))

    async def _write(self, uid: PodUid, writer: WriteMessages, *, writing: Writing) -> None:
        if self._due.pop(uid, None) is None:
            return  # released while others were written to
        pod = self._pods.get(uid)
        entry = self._waiting.of_pod(pod) if pod is not None and pod.is_gated else None
        if pod is None or entry is None or self._has_place(uid):
            return
        message = _message(entry)
        if pod.gate_message == message:
            return
        try:
            with writing(uid):
                reference = replace(PodRef.of(pod), resource_version=pod.resource_version)
                self._pods.note_version(uid, await writer.write(reference, message))
            self._metrics.gate_messages.labels("written").inc()
        except BackendError as exc:
            self._metrics.gate_messages.labels("failed").inc()
            self._due[uid] = self._clock.monotonic() + _AGAIN_SECONDS
            logger.info("condition not written", extra={"pod_uid": uid, "error": str(exc)})

    def _members(self, entry: WaitingEntry) -> Iterable[ManagedPod]:
        yield entry.pod
        yield from self._pods.of_gang(entry.gang)
        yield from self._pods.helpers.of_gang(entry.gang)


def _message(entry: WaitingEntry) -> str:
    return lasting_text(entry.reason)[:_MESSAGE_CHARS]
