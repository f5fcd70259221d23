"""The Events about decisions on pods that are being created.

A pod has no UID when its class is decided, and often no name; moments later, when it is validated,
it has both. Until then the text is kept here, bounded, oldest out first. For a pod that another
replica decided, the text comes from the pod's annotations, without the rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.api.events import Event, EventWriter
from kube.values.objects import items, mapping, marks_of
from policy.admission.gang_decision import PREFIX, GangDecision
from policy.rules.decision import Outcome
from service.memory import BoundedMap

_KEPT: Final = 10_000
_LOWERED: Final = "ClassLowered"
_QUEUED: Final = "OverQuota"
_ADMITTED: Final = "Admitted"
"""Admitted as requested, with a rule's note or a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNotice:
    """What the submitter of a pod reads in Events."""

    lines: tuple[str, ...]
    reason: str = _LOWERED


class PendingEvents:
    """Keeps notices until their pods have names."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._notices: BoundedMap[str, PodNotice] = BoundedMap(_KEPT)

    def note(self, decision: GangDecision) -> None:
        """Keep the notice of a decision, if its submitter must know anything.

        The first pod of a gang has the rule in its notice. Pods that follow the same decision get
        the same notice, so that their workload has one Event and not one in other words, too.
        """
        key = str(decision.decision_id)
        lines = tuple(line.removeprefix(PREFIX) for line in decision.format_warnings())
        if not lines:
            self._notices.pop(key, None)
            return
        reason, known = _reason(decision), self._notices.get(key)
        if decision.is_new or known is None or known.reason != reason:
            self._notices[key] = PodNotice(lines=lines, reason=reason)

    def write(self, pod: Mapping[str, Any], decision: str) -> None:
        """Write the Events on a pod and its workload."""
        notice = self._notices.get(decision) or _read_notice(pod, decision)
        for line in notice.lines:
            for obj in (pod, *_owners(pod)):
                self._events.write(Event.about(obj, reason=notice.reason, message=line))


def _reason(decision: GangDecision) -> str:
    if decision.outcome is Outcome.QUEUED:
        return _QUEUED
    return _LOWERED if decision.is_lowered else _ADMITTED


def _read_notice(pod: Mapping[str, Any], decision: str) -> PodNotice:
    """Build the notice from a pod's annotations, which were compared with the pod before."""
    annotations = marks_of(pod, "annotations")
    asked = annotations.get(marks.REQUESTED_CLASS_ANNOTATION)
    got = annotations.get(marks.CLASS_ANNOTATION)
    if marks.UNCHARGED_ANNOTATION in annotations:
        return PodNotice(lines=(f"waits for quota by decision {decision}",), reason=_QUEUED)
    line = f"class {asked} is lowered to {got} by decision {decision}"
    return PodNotice(lines=(line,) if asked != got else ())


def _owners(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the workload of a pod, as far as an Event needs it."""
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
