"""Nodes on which pods that have places there keep each other from being bound.

kube-scheduler keeps a nominated node free from pods of the same priority, and takes a nomination
from a pod that it refused, unless that pod may not preempt. Where several such pods are nominated
and there is CPU for one of them, each is refused because of the others. Without nominations the
first that is looked at is bound.
"""

from collections import Counter
from collections.abc import Collection

from extender.queue.model import QueuedPod
from extender.queue.ports import Cells
from policy.submission import NodeName, PodUid


class ContendedNodes:
    """Who was refused by kube-scheduler, and where several of those have their places."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._refused: dict[PodUid, None] = {}
        self._nodes: frozenset[NodeName] = frozenset()

    def see(self, pod: QueuedPod) -> None:
        """Note what kube-scheduler last said of a pod that is not bound."""
        if pod.is_refused:
            self._refused[pod.uid] = None
        else:
            self.forget(pod.uid)

    def forget(self, uid: PodUid) -> None:
        """A pod is bound or gone, or not refused any more."""
        self._refused.pop(uid, None)

    def look(self) -> Collection[PodUid]:
        """Look where they are now; who may want another nomination, if that is another answer."""
        places = [self._cells.placement(uid) for uid in self._refused]
        counts = Counter(place.node for place in places if place is not None)
        before = self._nodes
        self._nodes = frozenset(node for node, count in counts.items() if count > 1)
        return () if self._nodes == before else self._refused

    def nomination(self, pod: QueuedPod) -> NodeName | None:
        """The node that a pod is to be nominated for."""
        place = self._cells.placement(pod.uid)
        if place is None or (pod.is_refused and place.node in self._nodes):
            return None
        return place.node
