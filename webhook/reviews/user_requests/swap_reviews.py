"""Reviews of swaps: the pod states who asked for one and with which gang, and the log has rows."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.admission.patches import annotations_patch, unmark_patch
from kube.lives.pod_swaps import SWAP_PATH
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, ConflictError, RequestError
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest, format_swap, parse_swap
from policy.submission import GangKey
from policy.wording import quote
from service.clock import Clock
from service.memory import BoundedMap, ExpiringMap
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from state.promises.promises import PromiseStore
from webhook.guard.swap_guard import SwapGuard, swap_text
from webhook.reviews.user_requests.named_gangs import NamedGangs
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_REMEMBERED: Final = 10_000
_REPEAT_SECONDS: Final = 10.0
"""The members of a gang are changed one by one: their swap is decided once."""
_MOST_SWAPS: Final = 30
_PER_SECONDS: Final = 60.0
_PROMISE_SECONDS: Final = 0.5

_Key = tuple[str, GangKey, str]
"""A user, a gang, and the gang that the user names."""


class SwapReviews:
    """Reviews pods whose swap is set, changed or removed."""

    def __init__(
        self,
        guard: SwapGuard,
        gangs: NamedGangs,
        *,
        promises: PromiseStore | None,
        log: DecisionLog,
        clock: Clock,
    ) -> None:
        """Without `promises` the leader alone refuses gangs for which cells are reserved."""
        self._guard = guard
        self._promises = promises
        self._gangs = gangs
        self._log = log
        self._clock = clock
        self._decided: ExpiringMap[_Key, SwapRequest] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )
        self._undone: ExpiringMap[tuple[str, GangKey], None] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )
        self._asked: BoundedMap[str, deque[float]] = BoundedMap(_REMEMBERED)
        """When users asked for swaps lately."""

    async def mutate(self, review: ReviewRequest) -> ReviewResponse:
        """Write on a pod which swap its user asked for.

        Raises RequestError if the user may not, and ConflictError if that cannot be decided now.
        """
        before, after = review.old_object, review.object
        if review.operation != "UPDATE" or before is None or after is None:
            return ALLOWED
        text = swap_text(after)
        pod = self._gangs.read(before) if swap_text(before) != text else None
        if pod is None:
            return ALLOWED
        role = self._guard.check_own(review.user, pod, after)
        if text is None:
            self._note_undone(review, pod)
            gone = unmark_patch(after, [marks.SWAPPED_BY_ANNOTATION])
            return ReviewResponse(is_allowed=True, patch=gone)
        request = await self._decide(review, pod, role, text)
        written = {marks.SWAPPED_BY_ANNOTATION: format_swap(request)}
        return ReviewResponse(is_allowed=True, patch=annotations_patch(after, written))

    async def _decide(
        self, review: ReviewRequest, pod: ManagedPod, role: HoldRole, text: str
    ) -> SwapRequest:
        key = review.user.username, pod.gang.key, text
        known = self._decided.get(key)
        if known is not None:
            return known
        self._count(review.user.username)
        try:
            namespace, name = parse_swap(text, namespace=pod.namespace)
        except ValueError as exc:
            raise RequestError.at(SWAP_PATH, str(exc)) from exc
        found = await self._gangs.find(namespace, name)
        other = self._guard.choose(review.user, pod, found, name=f"{namespace}/{name}")
        await self._check_promises((pod.gang.key, other.gang.key))
        request = SwapRequest(
            other=other.gang.key,
            role=role,
            user=review.user.username,
            at=self._clock.now().timestamp(),
        )
        if not review.dry_run:
            self._decided[key] = request
            both = pod.gang.key, other.gang.key
            for gang, partner in (both, both[::-1]):
                reason = f"{request.describe_user()} swaps it with gang {partner}"
                self._record(gang, "swapped", reason, {"user": request.user, "with": str(partner)})
        return request

    async def _check_promises(self, gangs: tuple[GangKey, GangKey]) -> None:
        """Raise RequestError if cells are reserved for a gang.

        The leader checks that, too: it knows reservations that are not in the database yet.
        """
        if self._promises is None:
            return
        try:
            async with asyncio.timeout(_PROMISE_SECONDS):
                rows = await self._promises.load(ended_since=self._clock.now())
        except (BackendError, TimeoutError):
            return
        promised = {row.gang for row in rows if row.ended_at is None}
        for gang in gangs:
            if gang in promised:
                why = f"cells are reserved for gang {gang}: a promised start is not given away"
                raise RequestError.at(SWAP_PATH, why)

    def _count(self, user: str) -> None:
        """Raise ConflictError if a user asks for more swaps than anyone needs."""
        now = self._clock.monotonic()
        asked = self._asked.get(user)
        if asked is None:
            asked = self._asked[user] = deque(maxlen=_MOST_SWAPS)
        if len(asked) == _MOST_SWAPS and now - asked[0] < _PER_SECONDS:
            raise ConflictError(f"user {quote(user)} asked for {_MOST_SWAPS} swaps within a minute")
        asked.append(now)

    def _note_undone(self, review: ReviewRequest, pod: ManagedPod) -> None:
        key = review.user.username, pod.gang.key
        if review.dry_run or pod.swap is None or key in self._undone:
            return
        self._undone[key] = None
        self._decided.pop((*key, swap_text(review.old_object or {}) or ""))
        reason = f"{review.user.username} undoes its swap with gang {pod.swap.other}"
        details = {"user": review.user.username, "with": str(pod.swap.other)}
        self._record(pod.gang.key, "undone", reason, details)

    def _record(self, gang: GangKey, outcome: str, reason: str, details: Mapping[str, Any]) -> None:
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="webhook",
                kind=RowKind.SWAP,
                subject=str(gang),
                outcome=outcome,
                reason=reason,
                latency_seconds=0.0,
                details=details,
            )
        )
