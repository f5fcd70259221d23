"""Reviews of changes of a hold: the pod states who holds its gang, and the log has a row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kube import marks
from kube.admission.patches import annotations_patch, unmark_patch
from kube.lives.pod_holds import hold_annotations
from kube.read.pods import read_pod
from kube.values.objects import Operation, marks_of
from policy.queues.holds import Holder, describe_holder, read_hold
from service.clock import Clock
from service.memory import ExpiringMap
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from webhook.guard.hold_guard import HoldGuard
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_REMEMBERED: Final = 10_000
_REPEAT_SECONDS: Final = 60.0
"""The members of a gang are changed one by one: the gang has one row."""


class HoldReviews:
    """Reviews pods whose hold is set, changed or removed."""

    def __init__(self, guard: HoldGuard, *, log: DecisionLog, clock: Clock) -> None:
        self._guard = guard
        self._log = log
        self._clock = clock
        self._written: ExpiringMap[tuple[str, str], None] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )

    async def mutate(self, review: ReviewRequest) -> ReviewResponse:
        """Write on a pod who holds its gang. Raises RequestError if the user may not."""
        before, after = review.old_object, review.object
        if review.operation != "UPDATE" or before is None or after is None:
            return ALLOWED
        holder = self._guard.check(review.user, before, after)
        if holder is None:
            return ALLOWED
        now = self._clock.now().timestamp()
        written = hold_annotations(before, after, holder=replace(holder, since=now), now=now)
        if not review.dry_run:
            self._record(before, after, holder)
        return ReviewResponse(is_allowed=True, patch=_patch(after, written))

    def _record(self, before: Mapping[str, Any], after: Mapping[str, Any], holder: Holder) -> None:
        pod = read_pod(before)
        text = marks_of(after, "annotations").get(marks.HOLD_ANNOTATION)
        subject = str(pod.gang.key) if pod is not None else ""
        outcome = "released" if text is None else "held"
        why = "" if text is None else f": {read_hold(str(text)).reason}"
        reason = f"{describe_holder(holder)} {'releases' if text is None else 'holds'} it{why}"
        if (subject, reason) in self._written:
            return
        self._written[subject, reason] = None
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="webhook",
                kind=RowKind.HOLD,
                subject=subject,
                outcome=outcome,
                reason=reason,
                latency_seconds=0.0,
                details={"user": holder.user, "role": holder.role, "hold": text},
            )
        )


def _patch(pod: Mapping[str, Any], written: Mapping[str, str | None]) -> list[Operation]:
    kept = {key: text for key, text in written.items() if text is not None}
    gone = [key for key, text in written.items() if text is None]
    return [*(annotations_patch(pod, kept) if kept else ()), *unmark_patch(pod, gone)]
