"""What owners of pods are told, in plain words, once per change of reason."""

from collections.abc import Sequence

from extender.cells.model import Place
from extender.waiting import Waiting
from kube.events import Event, EventWriter, ObjectRef
from kube.pods import ManagedPod
from policy.errors import Problem
from policy.submission import GangKey

_SHOWN_PROBLEMS = 5


class Announcer:
    """Says on objects what was decided about them."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def waits(self, waiting: Waiting) -> None:
        """A pod waits, for another reason than before."""
        about = ObjectRef(
            kind="Pod", namespace=waiting.namespace, name=waiting.name, uid=waiting.uid
        )
        self._writer.post(Event(about=about, reason="Waiting", message=waiting.reason))

    def refused(self, pod: ManagedPod, reason: str) -> None:
        """A pod's gang is not planned, for another reason than before."""
        self._writer.post(Event(about=_ref(pod), reason="Waiting", message=reason))

    def placed(self, pod: ManagedPod, decision: Place) -> None:
        """A pod that waited has its place; others may have been moved out of its way."""
        placement = decision.placement
        cells = ", ".join(map(str, placement.leaf_cells))
        message = f"placed on node {placement.node}, leaf cells {cells}"
        self._writer.post(Event(about=_ref(pod), reason="Placed", message=message))

    def downgraded(self, members: Sequence[ManagedPod], *, by: GangKey) -> None:
        """A gang goes on, but only as long as nobody has a better claim."""
        for pod in members:
            message = (
                f"gang {pod.gang.key} is opportunistic from now on: gang {by} has a better claim "
                f"to the share of VC {pod.vc}"
            )
            self._writer.post(Event(about=_ref(pod), reason="Downgraded", message=message))

    def preempted(self, pod: ManagedPod, *, why: str) -> None:
        """A pod is ended for the sake of others."""
        event = Event(about=_ref(pod), reason="Preempted", message=why, is_warning=True)
        self._writer.post(event)

    def bad_document(self, about: ObjectRef, problems: Sequence[Problem]) -> None:
        """A policy document is not in force, because of these problems."""
        told = "; ".join(map(str, problems[:_SHOWN_PROBLEMS]))
        rest = len(problems) - _SHOWN_PROBLEMS
        message = f"the last good version stays in force: {told}"
        message += f"; and {rest} more problems" if rest > 0 else ""
        self._writer.post(
            Event(about=about, reason="InvalidPolicy", message=message, is_warning=True)
        )


def _ref(pod: ManagedPod) -> ObjectRef:
    return ObjectRef(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
