"""What owners of pods are told, in plain words, once per change of reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.outcomes.waiting_list import WaitingEntry
from kube.api.events import Event, EventWriter
from kube.read.pods import ManagedPod
from policy.placement import Placement
from policy.submission import GangKey

_MOST_CHARS = 1024
"""As much as Kubernetes takes of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class Announcer:
    """Says on objects what was decided about them."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def waits(self, entry: WaitingEntry) -> None:
        """A gang or a pod waits for another reason than before."""
        self._say(_ref(entry), "Waiting", entry.reason)

    def placed(self, entry: WaitingEntry, placement: Placement) -> None:
        """A gang or a pod that waited has its place."""
        cells = ", ".join(map(str, placement.leaf_cells))
        self._say(_ref(entry), "Placed", f"placed on node {placement.node}, leaf cells {cells}")

    def downgraded(self, members: Sequence[ManagedPod], *, by: GangKey) -> None:
        """A gang goes on, but only as long as nobody has a better claim."""
        for pod in members:
            message = (
                f"gang {pod.gang.key} is opportunistic from now on: gang {by} has a better claim "
                f"to the share of VC {pod.vc}"
            )
            self._say(_ref(pod), "Downgraded", message)

    def preempted(self, pod: ManagedPod, *, why: str) -> None:
        """A pod is ended for the sake of others, of which it is told once."""
        self._say(_ref(pod), "Preempted", why, is_warning=True, is_unique=True)

    def _say(
        self,
        about: ObjectRef,
        reason: str,
        message: str,
        *,
        is_warning: bool = False,
        is_unique: bool = False,
    ) -> None:
        self._writer.write(
            Event(
                namespace=about.namespace,
                api_version="v1",
                kind=about.kind,
                name=about.name,
                uid=about.uid,
                reason=reason,
                message=message[:_MOST_CHARS],
                is_warning=is_warning,
                is_unique=is_unique,
            )
        )


def _ref(pod: ManagedPod | WaitingEntry) -> ObjectRef:
    return ObjectRef(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
