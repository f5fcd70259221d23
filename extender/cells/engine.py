"""The engine: who has which leaf cell, and who may have which next.

The first member that asks makes the engine find room for its whole gang; the places of the members
that have not asked yet are held by the gang's *lease*. Each later member takes one of them. A lease
that nobody uses in time expires, and what was not bound under it is free again.
"""

from collections.abc import Collection, Mapping, Sequence

from extender.cells import invariants, views
from extender.cells.applying import Lives
from extender.cells.joining import Joiner
from extender.cells.model import (
    Decision,
    GangView,
    MemberRequest,
    NodeCell,
    Placement,
)
from extender.cells.observing import Bound, Observer, recovery_order
from extender.cells.placing import slot_placement
from extender.cells.planning import Planner
from extender.cells.reconfiguration import GangEffect, effects, replay_order
from extender.cells.registry import Registry
from extender.cells.table import Table
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import Topology


class Engine:
    """Plans, applies, observes. Without a topology all nodes are open to everybody."""

    def __init__(self, *, lease_seconds: float, topology: Topology | None = None) -> None:
        self._lease_seconds = lease_seconds
        self._table = Table(topology)
        self._registry = Registry()
        self._lives = Lives(self._table, self._registry, lease_seconds=lease_seconds)
        self._planner = Planner(self._table, self._registry)
        self._observer = Observer(self._table, self._lives)
        self._joiner = Joiner(self._table, self._observer)

    # -- deciding

    def plan(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float = 0.0
    ) -> Decision:
        """Decide where a member goes, among the nodes that kube-scheduler offers it.

        Deterministic, and changes nothing. `now` is part of the contract; no rule needs it yet.
        """
        return self._planner.plan(request, candidate_nodes)

    def apply(self, decision: Decision, *, now: float) -> None:
        """Make a decision of `plan` true; ConflictError, and no change, if it is out of date."""
        self._lives.apply(decision, now=now)

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        return self._lives.expire(now=now)

    # -- observing

    def observe_node(self, node: NodeCell) -> None:
        """A node joined or changed."""
        self._joiner.observe(node)

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._joiner.forget(name)

    def observe_bound(
        self,
        request: MemberRequest,
        *,
        node: NodeName,
        leaf_cells: tuple[int, ...],
        placement: Placement | None = None,
    ) -> None:
        """A member runs on a node, whoever put it there.

        `leaf_cells` is what its placement says; it is empty for a pod that we did not place, which
        is counted on the lowest leaf cells that nobody has. `placement` is the whole of it, where
        it is known: chain and preassigned cell find the VC's claim again.
        """
        whole = placement or Placement(node=node, leaf_cells=leaf_cells)
        self._observer.observe(Bound(request=request, placement=whole))

    def recover(self, running: Sequence[Bound]) -> None:
        """Take in all that runs, after a start: high priorities claim their cells first."""
        for bound in sorted(running, key=recovery_order):
            self._observer.observe(bound)

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted, or a waiting one was withdrawn."""
        self._lives.forget_member(member)

    # -- changing the topology

    def explain_topology(self, topology: Topology) -> list[GangEffect]:
        """Say what a new topology would do to each gang; changes nothing."""
        fresh = self._rebuilt(topology)
        return self._effects(fresh)

    def change_topology(self, topology: Topology) -> list[GangEffect]:
        """Work on a new topology from now on, with all that runs; says what that did."""
        fresh = self._rebuilt(topology)
        done = self._effects(fresh)
        self.__dict__.update(fresh.__dict__)
        return done

    def _effects(self, fresh: "Engine") -> list[GangEffect]:
        return list(effects(list(self._table.gangs.values()), fresh._table.gangs))

    def _rebuilt(self, topology: Topology) -> "Engine":
        """Another engine that was told all that this one knows."""
        fresh = Engine(lease_seconds=self._lease_seconds, topology=topology)
        for _, node in sorted(self._joiner.known.items()):
            fresh.observe_node(node)
        for gang in replay_order(list(self._table.gangs.values())):
            fresh._observer.adopt(gang)
        return fresh

    # -- looking

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed, bound or not."""
        key = self._lives.gang_of.get(member)
        slot = self._table.gangs[key].slot_of(member) if key else None
        return slot_placement(slot) if slot else None

    def nodes(self) -> list[tuple[NodeCell, Mapping[int, PodUid | None]]]:
        """All nodes with the holders of their leaf cells, by name."""
        holders: dict[NodeName, dict[int, PodUid | None]] = {}
        for gang in self._table.gangs.values():
            for slot in [slot for slot in gang.slots if not slot.is_reserved]:
                placement = slot_placement(slot)
                there = holders.setdefault(placement.node, {})
                there.update(dict.fromkeys(placement.leaf_cells, slot.member))
        return [
            (node, dict(sorted(holders.get(name, {}).items())))
            for name, node in sorted(self._joiner.known.items())
        ]

    def gangs(self) -> list[GangView]:
        """All gangs that have leaf cells or have reserved them, by key."""
        return [views.view_gang(gang) for _, gang in sorted(self._table.gangs.items())]

    def cells(self) -> list[views.CellView]:
        """All physical cells, as trees."""
        return [
            views.view_cell(top)
            for _, tree in sorted(self._table.trees.items())
            for top in tree.root.children
        ]

    def vcs(self) -> dict[VcName, views.VcView]:
        """All VCs with their preassigned cells."""
        return {
            name: views.view_vc(self._table, vc) for name, vc in sorted(self._table.vcs.items())
        }

    def check(self) -> None:
        """Check every invariant; InvariantError is our bug."""
        invariants.check(self._table)
