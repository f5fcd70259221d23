"""Nodes, cluster documents and priorities: what shapes the cells, and the standing of gangs.

Large changes are made in steps, between which the cluster is in use. The log says at which steps
something else happened, so that a replay does the same steps in between. Only one such change may
be under way at a time: the callers take turns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from extender.cells.engine import Engine
from extender.cells.freed_cells import FreedCells
from extender.cells.observe.reconfiguration import Changed, GangEffect
from extender.cells.views.listings import Stepwise, run_to_end
from extender.cluster.journal import Journal
from extender.cluster.reader import ClusterReader
from extender.cluster.topology_source import TopologySource, parse_cluster
from kube.read.nodes import KubeNode
from policy.cluster.document import ClusterDocument
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology

T = TypeVar("T")


class ShapedCluster(ClusterReader):
    """The part of `Cluster` that follows nodes, cluster documents and classes."""

    def __init__(self, engine: Engine, journal: Journal) -> None:
        super().__init__(engine)
        self.journal = journal
        self._source = TopologySource()
        self.nodes = self._source.nodes
        """The nodes that are known."""
        self.on_room: list[Callable[[FreedCells | None], None]] = []
        """Callbacks that run when leaf cells may have become free, or nodes have joined."""
        self.on_loss: list[Callable[[Sequence[GangKey]], None]] = []
        """Callbacks that run when gangs have lost their leases because their cells changed."""
        self.on_node_lost: list[Callable[[NodeName], None]] = []
        """Callbacks that run when a node has left or cannot be used for now."""
        self.on_node_change: list[Callable[[NodeName], None]] = []
        """Callbacks that run when a node has joined, changed or left."""

    # -- nodes

    def observe_node(self, node: KubeNode) -> None:
        """A node joined or changed."""
        if not self._source.put_node(node):
            return
        self.journal.observe_node(node)
        self._observe_cells_of(node)
        self.version += 1
        if not node.is_healthy:
            self._notify_node_lost(node.name)
        self._notify_node_change(node.name)
        self.notify_room()

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        if not self._source.remove_node(name):
            return
        self.journal.forget_node(name)
        self._engine.forget_node(name)
        self.version += 1
        self._notify_node_lost(name)
        self._notify_node_change(name)

    def _notify_node_lost(self, node: NodeName) -> None:
        for notify in self.on_node_lost:
            notify(node)

    def note_node_change(self, name: NodeName) -> None:
        """A node changed in a way that concerns pods and not cells, such as a taint."""
        self._notify_node_change(name)
        self.notify_room()

    def _notify_node_change(self, node: NodeName) -> None:
        for notify in self.on_node_change:
            notify(node)

    def notify_room(self, freed: FreedCells | None = None) -> None:
        """Run the callbacks for leaf cells that gangs may now be able to use; None for any."""
        for notify in self.on_room:
            notify(freed)

    def _observe_cells_of(self, node: KubeNode) -> None:
        cell = self._source.node_cell(node)
        if cell is None:
            self._engine.forget_node(node.name)
        else:
            self._engine.observe_node(cell)

    # -- documents

    def use_document(self, text: str | None) -> list[GangEffect]:
        """Put another cluster document in force in one step."""
        return run_to_end(self.use_document_stepwise(text))

    def use_document_stepwise(self, text: str | None) -> Stepwise[list[GangEffect]]:
        """Put another cluster document in force; return what happens to each gang.

        The call itself raises SpecError with all problems. The document in force stays in use
        until the cells of the new one are complete. The log stores the text: a replay reads the
        same.
        """
        document = None if text is None else parse_cluster(text)
        self.journal.change_document(text)
        return self._counted(self._use(document))

    def _use(self, document: ClusterDocument | None) -> Stepwise[list[GangEffect]]:
        built = yield from self._source.prepare_stepwise(document)
        if document is None or built is None:
            return (yield from self._clear())
        reclaims = document.foreign == "reclaim"
        done = yield from self._engine.change_topology_stepwise(
            built.topology, reclaims_foreign=reclaims
        )
        self._source.commit()
        self.topology = built.topology
        self.problems, self.warnings = built.problems, built.warnings
        yield from self._take_in(done)
        return done.effects

    def _clear(self) -> Stepwise[list[GangEffect]]:
        self._source.commit()
        self.topology, self.problems, self.warnings = None, (), ()
        self._engine.clear()
        yield from self._take_in(Changed(effects=[], moved=[], lost=self.members.uids()))
        return []

    def _take_in(self, done: Changed) -> Stepwise[None]:
        """Note what a new document did: first the lost leases, then what only describes places."""
        self.version += 1
        self._lose(done.lost)
        for name in list(self.nodes):
            if name in self.nodes:
                self._observe_cells_of(self.nodes[name])
            yield
        yield from self._update_stepwise(done.moved)
        self.version += 1
        self.notify_room()

    @property
    def is_stale(self) -> bool:
        """Whether nodes have changed since the cells were built from them."""
        return self._source.is_stale

    def refresh_topology(self) -> list[GangEffect]:
        """Rebuild the cells of nodes that have changed, in one step."""
        return run_to_end(self.refresh_topology_stepwise())

    def refresh_topology_stepwise(self) -> Stepwise[list[GangEffect]]:
        """Rebuild the cells of nodes that have changed; return what happens to gangs there.

        The cost is that of the nodes that have changed. Most changes, such as a label that names no
        level, leave all cells as they are. A new leaf type, or promises that are cut below what is
        in use, rebuild all cells.
        """
        self.journal.refresh_topology()
        return self._counted(self._refresh())

    def _refresh(self) -> Stepwise[list[GangEffect]]:
        built = yield from self._source.build_stepwise()
        if built is None:
            return []
        self.problems, self.warnings = built.problems, built.warnings
        if built.topology == self.topology:
            return []
        take_in = partial(self._take_topology, built.topology)
        done = yield from self._engine.update_topology_stepwise(built.topology, on_lost=take_in)
        yield from self._update_stepwise(done.moved)
        self.notify_room()
        return done.effects

    def _take_topology(self, topology: Topology, lost: Sequence[PodUid]) -> None:
        self.topology = topology
        self.version += 1
        self._lose(lost)

    # -- priorities

    def suspend_preemption(self, *, is_suspended: bool) -> None:
        """Decide without preemption while gangs get other priorities one after the other."""
        self.journal.suspend_preemption(is_suspended=is_suspended)
        self._engine.suspend_preemption(is_suspended=is_suspended)
        self.version += 1
        if not is_suspended:
            self.notify_room()

    def rerank(self, priorities: Mapping[GangKey, int]) -> list[GangEffect]:
        """Give gangs other priorities in one step."""
        return run_to_end(self.rerank_stepwise(priorities))

    def rerank_stepwise(self, priorities: Mapping[GangKey, int]) -> Stepwise[list[GangEffect]]:
        """Give gangs other priorities; return what happens to gangs."""
        self.journal.change_priorities(priorities)
        return self._counted(self._rerank(priorities))

    def _rerank(self, priorities: Mapping[GangKey, int]) -> Stepwise[list[GangEffect]]:
        done = yield from self._engine.rerank_stepwise(priorities)
        self._lose(done.lost)
        for gang, priority in priorities.items():
            self.members.rerank(gang, priority)
            yield
        yield from self._update_stepwise(done.moved)
        self.version += 1
        self.notify_room()
        return done.effects

    def raise_gang(self, gang: GangKey, priority: int) -> list[GangEffect]:
        """Raise the priority of one gang; return what happens to it."""
        self.journal.raise_gang(gang, priority)
        effects = self._engine.raise_gang(gang, priority)
        self.members.rerank(gang, priority)
        self.version += 1
        gangs = dict.fromkeys([one.gang for one in effects])
        members = [uid for key in gangs for uid in self.members.of_gang(key)]
        self._lose([uid for uid in members if not self._engine.has_place(uid)])
        run_to_end(self._update_stepwise(members))
        return effects

    # -- members

    def _counted(self, steps: Stepwise[T]) -> Stepwise[T]:
        """Log how many steps are done, so that a replay does as many."""
        while True:
            self.journal.advance()
            try:
                next(steps)
            except StopIteration as end:
                self.journal.complete()
                result: T = end.value
                return result
            yield

    def _lose(self, members: Iterable[PodUid]) -> None:
        """Note leases that were lost, because the cells have changed."""
        lost: dict[GangKey, None] = {}
        for uid in members:
            member = self.members.get(uid)
            if member is not None and not member.is_bound:
                self.members.remove(uid)
                lost[member.request.gang] = None
        for notify in self.on_loss:
            notify(list(lost))

    def _update_stepwise(self, members: Iterable[PodUid]) -> Stepwise[None]:
        """Note the other cells of members."""
        for uid in members:
            member, placement = self.members.get(uid), self._engine.placement(uid)
            if member is not None and placement is not None:
                self.members.add(replace(member, placement=placement))
            yield
