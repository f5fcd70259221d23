"""Events on pods and their workloads: one per change, for the people who own them."""

from collections.abc import Sequence

from kube.api.events import Event, EventWriter
from kube.read.managed_pod import ManagedPod
from kube.read.suspension import ReclaimMark
from kube.read.workloads import Workload
from policy.placement import Placement
from policy.queues.durations import format_duration
from policy.submission import GangKey
from policy.wording import count_of

_MOST_CHARS = 1024
"""As much as Kubernetes takes of a message."""


class PodEvents:
    """Writes the Events that pods get from the extender."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def waiting(self, pod: ManagedPod, why: str) -> None:
        """Say why a pod, or its gang, waits."""
        self._write(pod, "Waiting", why)

    def workload_waits(self, workload: Workload, *, namespace: str, why: str) -> None:
        """Say on a workload why its pods wait."""
        self._write_on(workload, namespace, "Waiting", why, is_warning=False)

    def asked_for_nodes(self, pod: ManagedPod, *, request: str) -> None:
        """Say that the autoscaler was asked for nodes for a pod's gang."""
        message = f"asked for new nodes for gang {pod.gang.key}: ProvisioningRequest {request}"
        self._write(pod, "NodesRequested", message)

    def placed(self, pod: ManagedPod, placement: Placement) -> None:
        """Say where a pod that waited goes."""
        cells = ", ".join(map(str, placement.leaf_cells))
        self._write(pod, "Placed", f"placed on node {placement.node}, leaf cells {cells}")

    def downgraded(self, members: Sequence[ManagedPod], *, by: GangKey | None) -> None:
        """Say that a gang goes on without a guarantee: by another gang, or by other promises."""
        for pod in members:
            why = (
                f"gang {by} has a higher priority and needs the share of VC {pod.vc}"
                if by is not None
                else f"promises to VC {pod.vc}, or the nodes that back them, have changed, and the "
                "VC has no cells left for it"
            )
            message = f"gang {pod.gang.key} is now opportunistic and may be preempted: {why}"
            self._write(pod, "Downgraded", message)

    def promoted(self, members: Sequence[ManagedPod]) -> None:
        """Say that a gang that was downgraded has its guarantee again."""
        for pod in members:
            message = f"gang {pod.gang.key} is guaranteed again: VC {pod.vc} has cells for it"
            self._write(pod, "Promoted", message)

    def raised(self, pod: ManagedPod, *, why: str) -> None:
        """Say that a gang has a higher class from now on, and which limits have room for it."""
        self._write(pod, "ClassRaised", why)

    def reserved(self, pod: ManagedPod, reason: str, why: str) -> None:
        """Say what is reserved for a pod's gang, or what became of it."""
        self._write(pod, reason, why)

    def maintenance(self, pod: ManagedPod, why: str, *, has_begun: bool) -> None:
        """Say that the node of a pod is, or will be, in maintenance; each once."""
        reason = "MaintenanceBegan" if has_begun else "MaintenanceAhead"
        self._write(pod, reason, why, is_warning=True, is_unique=True)

    def overruns(self, pod: ManagedPod, why: str) -> None:
        """Say that a pod's gang uses leaf cells that are reserved for others by now."""
        self._write(pod, "ReservationOverrun", why, is_warning=True, is_unique=True)

    def warned(self, pod: ManagedPod, *, why: str, seconds: float) -> None:
        """Say that a pod will be ended, why and when; once, whichever leader writes it."""
        message = _warning(why, seconds)
        self._write(pod, "PreemptionNotice", message, is_warning=True, is_unique=True)

    def workload_warned(
        self, workload: Workload, *, namespace: str, why: str, seconds: float
    ) -> None:
        """Say on a workload that its pods will be ended."""
        message = _warning(why, seconds)
        self._write_on(workload, namespace, "PreemptionNotice", message, is_warning=True)

    def swapped(self, pod: ManagedPod, reason: str, why: str) -> None:
        """Say with which gang a pod's gang was swapped, or why it was not."""
        self._write(pod, reason, why)

    def start_by(self, pod: ManagedPod, reason: str, why: str) -> None:
        """Say that a wished start is not likely, or was missed."""
        self._write(pod, reason, why, is_warning=True, is_unique=True)

    def preempted(self, pod: ManagedPod, *, why: str) -> None:
        """Say why a pod is ended; the same Event is written once, whichever leader writes it."""
        self._write(pod, "Preempted", why, is_warning=True, is_unique=True)

    def workload_evicted(self, workload: Workload, *, namespace: str, why: str) -> None:
        """Say on a workload why its pods are ended; once, whichever leader writes it."""
        self._write_on(workload, namespace, "Preempted", why, is_warning=True)

    def workload_suspended(self, workload: Workload, *, namespace: str, mark: ReclaimMark) -> None:
        """Say on a workload why it is suspended, and what follows."""
        message = (
            f"{mark.why}; Cellgate has suspended {workload} and resumes it once its pods are gone: "
            "no failure is counted, and the new pods keep the age of the first ones "
            f"(suspended {count_of(mark.times, 'time')} so far)"
        )
        self._write_on(workload, namespace, "Preempted", message, is_warning=True)

    def workload_resumed(self, workload: Workload, *, namespace: str) -> None:
        """Say on a workload that it waits for room again."""
        message = f"Cellgate has resumed {workload}: its new pods wait for room"
        self._write_on(workload, namespace, "Resumed", message, is_warning=False)

    def _write_on(
        self, workload: Workload, namespace: str, reason: str, message: str, *, is_warning: bool
    ) -> None:
        self._writer.write(
            Event(
                namespace=namespace,
                api_version=f"{workload.group}/v1" if workload.group else "v1",
                kind=workload.kind,
                name=workload.name,
                uid=workload.uid,
                reason=reason,
                message=message[:_MOST_CHARS],
                is_warning=is_warning,
                is_unique=is_warning,
            )
        )

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


def _warning(why: str, seconds: float) -> str:
    return (
        f"ends in {format_duration(seconds)} (`preemption.grace` of the Queues document), unless "
        f"the preemption is withdrawn: {why}"
    )
