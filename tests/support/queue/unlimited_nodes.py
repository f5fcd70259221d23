"""Nodes that lack nothing beside leaf cells."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from policy.pod_resources import Shortage
from policy.submission import NodeName, PodUid


class UnlimitedNodes:
    """Nodes that lack nothing beside leaf cells."""

    def __init__(self, nodes: Iterable[NodeName]) -> None:
        self.nodes: dict[NodeName, bool] = dict.fromkeys(nodes, True)
        """And whether each of them is healthy."""

    def fitting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Collection[NodeName]:
        if not without:
            return self.nodes
        return {node: None for node in self.nodes if node not in without}

    suiting = freeable = fitting

    def closed_to(self, members: Iterable[PodUid]) -> Collection[NodeName]:
        return ()

    def crowded(
        self,
        seats: Iterable[tuple[PodUid, NodeName]],
        *,
        needs: Sequence[Hashable],
        ending: Collection[PodUid],
    ) -> Mapping[NodeName, int]:
        return {}

    def shortage(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName]
    ) -> Shortage | None:
        return None

    def take_grown(self) -> Collection[Hashable]:
        return ()
