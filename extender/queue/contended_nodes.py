"""Nodes on which nominated pods block each other.

kube-scheduler keeps a nominated node free from other pods of the same priority. It clears the
nomination of a pod that it refused, unless that pod may not preempt. If several such pods are
nominated for a node that has CPU for one of them, each is refused because of the others. Without
nominations, kube-scheduler binds the first one that it tries.
"""

from collections import Counter
from collections.abc import Collection

from extender.queue.model import QueuedPod
from extender.queue.ports import Cells
from policy.submission import NodeName, PodUid


class ContendedNodes:
    """Pods that kube-scheduler refused, and the nodes where several of them have places."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._refused: dict[PodUid, None] = {}
        self._nodes: frozenset[NodeName] = frozenset()

    def see(self, pod: QueuedPod) -> None:
        """Note whether kube-scheduler refused an unbound pod."""
        if pod.is_refused:
            self._refused[pod.uid] = None
        else:
            self.forget(pod.uid)

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is bound, gone, or no longer refused."""
        self._refused.pop(uid, None)

    def update(self) -> Collection[PodUid]:
        """Find the contended nodes again; return the pods whose nomination may have to change."""
        places = [self._cells.placement(uid) for uid in self._refused]
        counts = Counter(place.node for place in places if place is not None)
        before = self._nodes
        self._nodes = frozenset(node for node, count in counts.items() if count > 1)
        return () if self._nodes == before else self._refused

    def nomination(self, pod: QueuedPod) -> NodeName | None:
        """Return the node that a pod should be nominated for."""
        place = self._cells.placement(pod.uid)
        if place is None or (pod.is_refused and place.node in self._nodes):
            return None
        return place.node
