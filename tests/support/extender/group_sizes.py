"""PodGroups that all need the same number of members."""

from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod


class GroupSizes:
    """There are no PodGroups, or each of them needs so many members."""

    def __init__(self, size: int | None = None) -> None:
        self._size = size

    def size(self, pod: ManagedPod) -> int | None:
        """The members that the pod's PodGroup needs; a pod alone has none."""
        return None if pod.gang.form is GangForm.SINGLE else self._size
