"""Some nodes of the cluster, as the search for places sees them."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from extender.queue.ports import Nodes
from policy.pod_resources import Shortage
from policy.submission import NodeName, PodUid


class NodesWithin:
    """Implements `ports.Nodes` for the nodes of a reservation."""

    def __init__(self, nodes: Nodes, names: Iterable[NodeName]) -> None:
        self._nodes = nodes
        self._names = sorted(set(names))

    def _of(self, found: Collection[NodeName]) -> Collection[NodeName]:
        return {name: None for name in self._names if name in found}

    def fitting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return those that have room for a member with any of these needs."""
        return self._of(self._nodes.fitting(needs, without=without))

    def freeable(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return those that would have room if all pods that may be ended had ended."""
        return self._of(self._nodes.freeable(needs, without=without))

    def suiting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        """Return those that would do, whatever room they have."""
        return self._of(self._nodes.suiting(needs, without=without))

    def closed_to(self, members: Iterable[PodUid]) -> Collection[NodeName]:
        """Return the nodes with pods that keep one of these members off."""
        return self._nodes.closed_to(members)

    def crowded(
        self,
        seats: Iterable[tuple[PodUid, NodeName]],
        *,
        needs: Sequence[Hashable],
        ending: Collection[PodUid],
    ) -> Mapping[NodeName, int]:
        """Return the nodes that lack room for all members that are to be there together."""
        return self._nodes.crowded(seats, needs=needs, ending=ending)

    def shortage(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Shortage | None:
        """Return what most nodes lack, if any node lacks anything."""
        return self._nodes.shortage(needs, without=without)

    def take_grown(self) -> Collection[Hashable]:
        """Report nothing: the whole cluster reports what has grown."""
        return ()
