"""Reviews of changes of a hold: the pod states who holds its gang, and the log has a row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kube import marks
from kube.admission.patches import annotations_patch, unmark_patch
from kube.lives.pod_holds import HOLD_PATH, hold_annotations
from kube.read.pods import read_pod
from kube.values.objects import Operation, marks_of
from policy.admission.gang_decision import PREFIX
from policy.errors import ConflictError, RequestError
from policy.queues.holds import Holder, describe_holder, read_hold
from policy.wording import moment
from service.clock import Clock
from service.memory import ExpiringMap
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from webhook.guard.hold_guard import HoldGuard
from webhook.reviews.user_requests.named_gangs import NamedGangs
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_REMEMBERED: Final = 10_000
_REPEAT_SECONDS: Final = 60.0
"""The members of a gang are changed one by one: the gang has one row."""


class HoldReviews:
    """Reviews pods whose hold is set, changed or removed."""

    def __init__(
        self,
        guard: HoldGuard,
        gangs: NamedGangs,
        *,
        extender: str,
        log: DecisionLog,
        clock: Clock,
    ) -> None:
        """`extender` is the user that writes the hold of a pod that ended on those after it."""
        self._extender = extender
        self._guard = guard
        self._gangs = gangs
        self._log = log
        self._clock = clock
        self._written: ExpiringMap[str, tuple[object, Holder]] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )
        """The last change of each gang's hold, and by which user."""

    async def mutate(self, review: ReviewRequest) -> ReviewResponse:
        """Write on a pod who holds its gang. Raises RequestError if the user may not."""
        before, after = review.old_object, review.object
        is_ours = review.user.username == self._extender
        if review.operation != "UPDATE" or is_ours or before is None or after is None:
            return ALLOWED
        holder = self._guard.check(review.user, before, after)
        if holder is None:
            return ALLOWED
        await self._check_circle(before, after)
        now = self._clock.now().timestamp()
        written = hold_annotations(before, after, holder=replace(holder, since=now), now=now)
        if not review.dry_run:
            self._record(before, after, holder)
        patch, over = _patch(after, written), _warn_of_over(after, now=now)
        return ReviewResponse(is_allowed=True, patch=patch, warnings=over)

    async def _check_circle(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Raise RequestError if the gang that a hold waits for waits for the end of this one.

        If that cannot be read now the leader finds it out, and says so while both are held.
        """
        text = marks_of(after, "annotations").get(marks.HOLD_ANNOTATION)
        named = read_hold(str(text)).after if text is not None else None
        pod = self._gangs.read(before) if named is not None else None
        if named is None or pod is None:
            return
        try:
            found = await self._gangs.find(*named)
        except ConflictError:
            return
        own = pod.namespace, pod.gang.key.name
        if any(one.hold is not None and one.hold.hold.after == own for one in found):
            other = "/".join(named)
            message = f"gang {other} is held until the end of this gang: neither would start"
            raise RequestError.at(HOLD_PATH, message)

    def _record(self, before: Mapping[str, Any], after: Mapping[str, Any], holder: Holder) -> None:
        pod = read_pod(before)
        text = marks_of(after, "annotations").get(marks.HOLD_ANNOTATION)
        subject = str(pod.gang.key) if pod is not None else ""
        outcome = "released" if text is None else "held"
        why = "" if text is None else f": {read_hold(str(text)).reason}"
        reason = f"{describe_holder(holder)} {'releases' if text is None else 'holds'} it{why}"
        last = text, holder
        if self._written.get(subject) == last:
            return
        self._written[subject] = last
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


def _warn_of_over(pod: Mapping[str, Any], *, now: float) -> tuple[str, ...]:
    """Warn of a hold until a time in the past: it is often a wrong time zone."""
    text = marks_of(pod, "annotations").get(marks.HOLD_ANNOTATION)
    until = read_hold(str(text)).until if text is not None else None
    if until is None or until > now:
        return ()
    return (f"{PREFIX}{HOLD_PATH}: {moment(until)} is over, so the gang is not held",)


def _patch(pod: Mapping[str, Any], written: Mapping[str, str | None]) -> list[Operation]:
    kept = {key: text for key, text in written.items() if text is not None}
    gone = [key for key, text in written.items() if text is None]
    return [*(annotations_patch(pod, kept) if kept else ()), *unmark_patch(pod, gone)]
