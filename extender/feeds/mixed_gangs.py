"""Members without the mark of their workload beside members that have it.

While webhooks of two versions run side by side, the earlier one admits pods without the mark. Those
that do not run join the gang of the marked pods of the same controller; otherwise two parts of one
gang would wait for each other. (A pod of a gang that runs without marks gets none: see
`webhook.reviews.pod_workloads`.)
"""

from dataclasses import replace

from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.workloads import Workload
from policy.submission import GangKey

_Key = tuple[GangKey, str]
"""A gang without its owner, and the UID of a controller."""


class MixedGangs:
    """The marked gangs, by the controllers of their pods."""

    def __init__(self) -> None:
        self._marked: dict[_Key, Workload] = {}

    def is_new(self, pod: ManagedPod) -> bool:
        """Note a pod; tell whether it is the first marked one of its controller."""
        key = _key(pod)
        if key is None or pod.workload is None or key in self._marked:
            return False
        self._marked[key] = pod.workload
        return True

    def forget(self, pod: ManagedPod) -> None:
        """A gang has lost its last pod, which was this one."""
        key = _key(pod)
        if key is not None and pod.workload is not None:
            self._marked.pop(key, None)

    def joined(self, pod: ManagedPod, *, before: ManagedPod | None) -> ManagedPod:
        """Return a pod as a member of the marked gang of its controller, if it has no mark.

        `before` is the pod as it was noted last: once it has joined, it stays.
        """
        key = _key(pod)
        workload = self._marked.get(key) if key is not None else None
        has_joined = before is not None and before.workload is not None
        if workload is None or pod.workload is not None or (_has_begun(pod) and not has_joined):
            return pod
        owned = replace(pod.gang.key, owner=workload.uid)
        return replace(pod, workload=workload, gang=replace(pod.gang, key=owned))


def _has_begun(pod: ManagedPod) -> bool:
    return pod.node is not None or pod.is_released


def _key(pod: ManagedPod) -> _Key | None:
    if pod.controller is None or pod.gang.form is not GangForm.CELLGATE:
        return None
    return replace(pod.gang.key, owner=""), pod.controller.uid
