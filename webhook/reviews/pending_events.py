"""What was decided about pods that are being created, and the Event that tells it.

When a pod is decided about it has no uid, and often no name; moments later, when it is validated,
it has both. Until then the decision is kept here, bounded, oldest out first. A pod that another
replica decided about says itself what it got; only the rule is not known then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.api.events import Event, EventWriter
from kube.read.objects import items, mapping, marks_of
from policy.rules.decision import Outcome
from service.memory import BoundedMap
from webhook.admission.verdict import Verdict

_KEPT: Final = 10_000
_LOWERED: Final = "ClassLowered"
_WAITS: Final = "OverQuota"
_NOTED: Final = "Admitted"
"""Nothing was taken from it; a rule's note says why, or a warning how it was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the submitter of a pod was told."""

    lines: tuple[str, ...]
    reason: str = _LOWERED


class ToldPods:
    """Remembers decisions until their pods have names."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._told: BoundedMap[str, Told] = BoundedMap(_KEPT)

    def note(self, verdict: Verdict) -> None:
        """Remember a decision that there is something to tell about."""
        lines = tuple(line.removeprefix("cellgate: ") for line in verdict.format_warnings())
        if not lines:
            return
        told = Told(lines=lines, reason=_reason(verdict))
        self._told[str(verdict.decision)] = told

    def announce(self, pod: Mapping[str, Any], decision: str) -> None:
        """Tell it on the pod and its workload."""
        told = self._told.get(decision) or _read_told(pod, decision)
        for line in told.lines:
            for obj in (pod, *_owners(pod)):
                self._events.write(Event.about(obj, reason=told.reason, message=line))


def _reason(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.QUEUED:
        return _WAITS
    return _LOWERED if verdict.is_lowered else _NOTED


def _read_told(pod: Mapping[str, Any], decision: str) -> Told:
    """Say what a pod's own annotations tell, which were compared with the pod before."""
    annotations = marks_of(pod, "annotations")
    asked = annotations.get(marks.REQUESTED_CLASS_ANNOTATION)
    got = annotations.get(marks.CLASS_ANNOTATION)
    if marks.UNCHARGED_ANNOTATION in annotations:
        return Told(lines=(f"waits for room in its quotas by decision {decision}",), reason=_WAITS)
    line = f"class {asked} is lowered to {got} by decision {decision}"
    return Told(lines=(line,) if asked != got else ())


def _owners(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the workload of a pod, as much of it as an Event needs."""
    metadata = mapping(pod.get("metadata"))
    return [
        {
            "apiVersion": owner.get("apiVersion"),
            "kind": owner.get("kind"),
            "metadata": {
                "name": owner.get("name"),
                "uid": owner.get("uid"),
                "namespace": metadata.get("namespace"),
            },
        }
        for owner in items(metadata.get("ownerReferences"))
        if owner.get("controller") is True
    ]
