"""Records every refusal that no decision has recorded: invalid pods, closed VCs, full gangs.

A controller retries a refused pod again and again. The same refusal is logged once in a minute.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.read.gangs import GangForm
from kube.read.pods import read_pod
from kube.values.objects import mapping, marks_of
from policy.errors import RequestError
from service.clock import Clock
from service.memory import ExpiringMap
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from webhook.wire import ReviewRequest, ReviewResponse

_REPEAT_SECONDS: Final = 60.0
_REMEMBERED: Final = 10_000
_REFUSED: Final = "refused"


class RefusalLog:
    """Writes refusals to the decision log."""

    def __init__(self, log: DecisionLog, *, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._written: ExpiringMap[tuple[str, str], None] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )

    def note(self, review: ReviewRequest, response: ReviewResponse) -> None:
        """Record a refusal, unless it is recorded, a dry run, or was written just now."""
        if response.is_allowed or response.is_recorded or review.dry_run:
            return
        obj = mapping(review.object if review.object is not None else review.old_object)
        subject = _subject(review, obj)
        if (subject, response.message) in self._written:
            return
        self._written[subject, response.message] = None
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="webhook",
                kind=RowKind.ADMISSION,
                subject=subject,
                outcome=_REFUSED,
                reason=response.message,
                latency_seconds=0.0,
                details={
                    "user": review.user.username,
                    "operation": review.operation,
                    "kind": str(obj.get("kind") or ""),
                    "object": f"{review.namespace}/{_name(review, obj)}",
                },
            )
        )


def _subject(review: ReviewRequest, obj: Mapping[str, Any]) -> str:
    """Return the gang of a pod, as far as it can be read; otherwise the name of the object."""
    try:
        pod = read_pod(obj, request_uid=review.uid) if obj.get("kind") == "Pod" else None
    except RequestError:
        pod = None
    if pod is not None and pod.gang.form is not GangForm.SINGLE:
        return str(pod.gang.key)
    gang = marks_of(obj, "labels").get(marks.GANG_LABEL)
    name = gang if isinstance(gang, str) and gang else _name(review, obj)
    return f"{review.namespace}/{name}"


def _name(review: ReviewRequest, obj: Mapping[str, Any]) -> str:
    metadata = mapping(obj.get("metadata"))
    prefix = metadata.get("generateName")
    return review.name or str(metadata.get("name") or (f"{prefix}*" if prefix else ""))
