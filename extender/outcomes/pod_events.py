"""Events on pods: one per change, for the people who own them."""

from collections.abc import Sequence

from extender.cells.model import Reason
from kube.api.events import Event, EventWriter
from kube.read.managed_pod import ManagedPod
from policy.placement import Placement
from policy.submission import GangKey

_MOST_CHARS = 1024
"""As much as Kubernetes takes of a message."""


class PodEvents:
    """Writes the Events that pods get from the extender."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def waiting(self, pod: ManagedPod, reason: Reason) -> None:
        """Say why a pod, or its gang, waits."""
        self._write(pod, "Waiting", reason.text)

    def placed(self, pod: ManagedPod, placement: Placement) -> None:
        """Say where a pod that waited goes."""
        cells = ", ".join(map(str, placement.leaf_cells))
        self._write(pod, "Placed", f"placed on node {placement.node}, leaf cells {cells}")

    def downgraded(self, members: Sequence[ManagedPod], *, by: GangKey) -> None:
        """Say that a gang goes on without a guarantee."""
        for pod in members:
            message = (
                f"gang {pod.gang.key} is now opportunistic and may be preempted: gang {by} has a "
                f"better claim to the share of VC {pod.vc}"
            )
            self._write(pod, "Downgraded", message)

    def raised(self, pod: ManagedPod, *, why: str) -> None:
        """Say that a gang has a higher class from now on, and which limits have room for it."""
        self._write(pod, "ClassRaised", why)

    def preempted(self, pod: ManagedPod, *, why: str) -> None:
        """Say why a pod is ended; the same Event is written once, whichever leader writes it."""
        self._write(pod, "Preempted", why, is_warning=True, is_unique=True)

    def _write(
        self,
        pod: ManagedPod,
        reason: str,
        message: str,
        *,
        is_warning: bool = False,
        is_unique: bool = False,
    ) -> None:
        self._writer.write(
            Event(
                namespace=pod.namespace,
                api_version="v1",
                kind="Pod",
                name=pod.name,
                uid=pod.uid,
                reason=reason,
                message=message[:_MOST_CHARS],
                is_warning=is_warning,
                is_unique=is_unique,
            )
        )
