"""The leader notes which nodes with devices it sees: changes are judged by those of the last days.

A term begins with all nodes; from then on only nodes that changed are written. Nothing waits for
it: while the database is unavailable the notes are out of date, and what is missing in them is
noted again afterwards.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NoReturn

from extender.cluster.cluster import Cluster
from extender.room.cluster_room import ClusterRoom
from policy.cluster.document import LiveNode
from policy.errors import BackendError, ConflictError
from policy.pod_resources import CPU, MEMORY
from policy.submission import NodeName
from state.ledger.ledger import LeaderTerm
from state.nodes.seen_nodes import SeenNodes

logger = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 5.0
_AT_ONCE: Final = 500
"""Nodes in one statement."""


class NodeRecorder:
    """Writes the nodes that the cluster knows."""

    def __init__(
        self,
        seen: SeenNodes,
        *,
        cluster: Cluster,
        room: ClusterRoom,
        term: Callable[[], LeaderTerm],
    ) -> None:
        self._seen = seen
        self._cluster = cluster
        self._room = room
        self._term = term
        self._written: dict[NodeName, LiveNode] = {}
        """What this term has noted."""
        self._changed: dict[NodeName, None] = {}
        self._is_listed = False
        self._woken = asyncio.Event()
        cluster.on_node_change.append(self._observe)
        room.on_capacity.append(self._observe)

    def _observe(self, name: NodeName) -> None:
        self._changed[name] = None
        self._woken.set()

    async def run(self) -> NoReturn:
        """Write all nodes, then every change, until cancelled."""
        while True:
            try:
                await self.write()
            except (BackendError, ConflictError) as exc:
                self._is_listed = False
                logger.warning("nodes not noted, will retry", extra={"error": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            await self._woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)

    async def write(self) -> None:
        """Write what has changed; raises BackendError and ConflictError."""
        self._woken.clear()
        if not self._is_listed:
            self._changed |= dict.fromkeys(self._cluster.nodes)
        while self._changed:
            await self._write_some(list(islice(self._changed, _AT_ONCE)))
        if not self._is_listed:
            await self._seen.retain(list(self._written), term=self._term())
            self._is_listed = True

    async def _write_some(self, names: Sequence[NodeName]) -> None:
        there = {name: node for name in names if (node := self._live(name)) is not None}
        news = {name: node for name, node in there.items() if self._written.get(name) != node}
        gone = [name for name in names if name not in there and name in self._written]
        if news or gone:
            await self._seen.observe(list(news.values()), gone=gone, term=self._term())
        self._written |= news
        for name in names:
            if self._live(name) == there.get(name):  # else it has changed meanwhile
                self._changed.pop(name, None)
        for name in gone:
            self._written.pop(name, None)

    def _live(self, name: NodeName) -> LiveNode | None:
        """Return a node that has devices."""
        node = self._cluster.nodes.get(name)
        if node is None or not node.leaf_counts:
            return None
        capacity = self._room.capacity(name)
        return LiveNode(
            name=name,
            labels=node.labels,
            leaf_counts=node.leaf_counts,
            cpu=capacity.get(CPU),
            memory=capacity.get(MEMORY),
        )
