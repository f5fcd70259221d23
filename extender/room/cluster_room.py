"""Pods on nodes, and members that have a place: what is used of every node beside leaf cells.

A pod counts on the node that it is bound to; a member that is not bound yet counts on the node of
its place. Reports come in any order: a pod before its node, a place before its pod.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from extender.room.node_room import NodeRoom
from policy.pod_resources import NodePod, PodSelector
from policy.submission import NodeName, PodUid


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pod counts, and whether it may be ended there."""

    node: NodeName
    is_endable: bool


class ClusterRoom:
    """The room on all nodes."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, NodeRoom] = {}
        self._pods: dict[PodUid, NodePod] = {}
        self._bound: dict[PodUid, NodeName] = {}
        self._seats: dict[PodUid, _Place] = {}
        self._keepers: dict[PodSelector, Counter[NodeName]] = {}
        """Anti-affinity of the pods on nodes: the nodes where it holds."""
        self._changed: dict[NodeName, None] = {}
        self._has_opened = False
        """Whether a pod whose anti-affinity kept others off its node has gone."""
        self.on_growth: list[Callable[[], None]] = []
        """Callbacks that run when a node may have more room than before."""
        self.on_capacity: list[Callable[[NodeName], None]] = []
        """Callbacks that run when a node has joined, or has more or less in all."""

    # -- reports

    def put_node(self, name: NodeName, capacity: Mapping[str, int]) -> None:
        """A node joined or changed."""
        node = self._nodes.setdefault(name, NodeRoom())
        if node.capacity != capacity:
            node.capacity = capacity
            self._note_growth(name)
            for tell in self.on_capacity:
                tell(name)

    def capacity(self, name: NodeName) -> Mapping[str, int]:
        """Return what a node has for pods, whatever they use; nothing if it is not known."""
        node = self._nodes.get(name)
        return (node.capacity if node is not None else None) or {}

    def drop_node(self, name: NodeName) -> None:
        """A node left."""
        node = self._nodes.get(name)
        if node is not None:
            node.capacity = None
            self._tidy(name)

    def see(self, uid: PodUid, pod: NodePod, *, node: NodeName | None) -> None:
        """A pod that has not ended appeared or changed; `node` is where it is bound."""
        known = self._pods.get(uid)
        if known is not None and self._bound.get(uid) == node and known == pod:
            return
        before = self._leave(uid)
        self._pods[uid] = pod
        if node is None:
            self._bound.pop(uid, None)
        else:
            self._bound[uid] = node
        self._enter(uid, before)

    def lose(self, uid: PodUid) -> None:
        """A pod ended or was deleted."""
        before = self._leave(uid)
        self._pods.pop(uid, None)
        self._bound.pop(uid, None)
        self._enter(uid, before)

    def seat(self, uid: PodUid, node: NodeName, *, is_endable: bool) -> None:
        """A member has a place on a node; it may be endable for other gangs."""
        place = _Place(node, is_endable)
        if self._seats.get(uid) != place:
            before = self._leave(uid)
            self._seats[uid] = place
            self._enter(uid, before)

    def unseat(self, uid: PodUid) -> None:
        """A member has no place any more."""
        if uid in self._seats:
            before = self._leave(uid)
            del self._seats[uid]
            self._enter(uid, before)

    def pods(self) -> Collection[PodUid]:
        """All pods that are known."""
        return self._pods.keys()

    def pod(self, uid: PodUid) -> NodePod:
        """Return what is known of a pod; an unknown one needs nothing."""
        return self._pods.get(uid) or NodePod()

    @contextmanager
    def assuming(self, pods: Mapping[PodUid, NodePod]) -> Iterator[None]:
        """Know pods without a node for a moment, while questions about them are answered."""
        self._pods.update(pods)
        try:
            yield
        finally:
            for uid in pods:
                del self._pods[uid]

    # -- where pods count

    def _place(self, uid: PodUid) -> _Place | None:
        seat, bound = self._seats.get(uid), self._bound.get(uid)
        if bound is None or (seat is not None and seat.node == bound):
            return seat
        return _Place(bound, is_endable=False)

    def _leave(self, uid: PodUid) -> NodeName | None:
        """Take a pod off its node; return the node."""
        place, pod = self._place(uid), self._pods.get(uid)
        if place is None or pod is None:
            return None
        self._nodes[place.node].remove(uid)
        for selector in pod.resources.keeps_off:
            nodes = self._keepers[selector]
            nodes[place.node] -= 1
            if not nodes[place.node]:
                del nodes[place.node]
            if not nodes:
                del self._keepers[selector]
            self._has_opened = True
        return place.node

    def _enter(self, uid: PodUid, before: NodeName | None) -> None:
        """Count a pod where it belongs now; `before` is the node that it was taken off."""
        place, pod = self._place(uid), self._pods.get(uid)
        if place is not None and pod is not None:
            self._nodes.setdefault(place.node, NodeRoom()).add(
                uid, pod, is_endable=place.is_endable
            )
            for selector in pod.resources.keeps_off:
                self._keepers.setdefault(selector, Counter())[place.node] += 1
            self._changed[place.node] = None
        if before is not None:
            self._tidy(before)
            self._note_growth(before)

    def _note_growth(self, name: NodeName) -> None:
        self._changed[name] = None
        for notify in self.on_growth:
            notify()

    def _tidy(self, name: NodeName) -> None:
        if self._nodes[name].is_empty:
            del self._nodes[name]

    # -- questions

    def take_changed(self) -> list[NodeName]:
        """Return the nodes that have changed, and forget that they have."""
        changed, self._changed = list(self._changed), {}
        return changed

    def take_opened(self) -> bool:
        """Whether anti-affinity of a pod has ceased to hold on a node since this was last asked."""
        has_opened, self._has_opened = self._has_opened, False
        return has_opened

    def node(self, name: NodeName) -> NodeRoom:
        """Return the room on a node; nothing is lacking on an unknown one."""
        return self._nodes.get(name) or NodeRoom()

    def closed_to(self, members: Iterable[PodUid]) -> dict[NodeName, None]:
        """Return the nodes with pods whose anti-affinity keeps one of these members off."""
        if not self._keepers:
            return {}
        pods = list(dict.fromkeys(map(self.pod, members)))
        return {
            node: None
            for selector, nodes in self._keepers.items()
            if any(selector.selects(pod) for pod in pods)
            for node in nodes
        }

    def count_fitting(
        self, name: NodeName, members: Sequence[PodUid], *, ending: Collection[PodUid]
    ) -> int:
        """Return how many members, the first ones, a node can take once some pods have ended."""
        room, pods = self.node(name), [self.pod(uid) for uid in members]
        for count in range(len(pods), 0, -1):
            wanted = [pod.resources for pod in pods[:count]]
            if _tolerate_each_other(pods[:count]) and room.lack(wanted, ending=ending) is None:
                return count
        return 0


def _tolerate_each_other(pods: Sequence[NodePod]) -> bool:
    is_special = any(pod.resources.is_special for pod in pods)
    return not is_special or all(one.tolerates(other) for one, other in combinations(pods, 2))
