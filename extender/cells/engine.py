"""The engine: who has which leaf cell, and who may have which next.

The first member that asks makes the engine find room for its whole gang; the places of the members
that have not asked yet are held by the gang's *lease*. Each later member takes one of them. A lease
that nobody uses in time expires, and what was not bound under it is free again.
"""

from collections.abc import Collection, Mapping, Sequence

from extender.cells.decide import wording
from extender.cells.decide.applier import Applier
from extender.cells.decide.decider import Planner
from extender.cells.model import (
    Decision,
    GangView,
    MemberRequest,
    NodeCell,
    Placement,
)
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.bound_pods import (
    FullReplayNeeded,
    PlacedMember,
    PodObserver,
    recovery_order,
)
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.observe.node_changes import TopologyUpdater
from extender.cells.observe.nodes import NodeObserver
from extender.cells.observe.reconfiguration import (
    NO_CHANGE,
    GangEffect,
    effects,
    ranked,
    replay_order,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.placements import slot_placement
from extender.cells.state.registry import Registry
from extender.cells.views import invariants, listings, state_views
from extender.cells.views.listings import Holders, Stepwise, run_to_end
from policy.errors import InvariantError
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import Topology


class _Components:
    """All that works on one topology; a new topology gets new ones."""

    def __init__(self, topology: Topology | None, *, lease_seconds: float) -> None:
        self.topology = topology
        self.table = AllocationTable(topology)
        self.registry = Registry()
        self.lifecycle = GangLifecycle(self.table, self.registry)
        self.planner = Planner(self.table, self.registry)
        self.applier = Applier(self.table, self.lifecycle, lease_seconds=lease_seconds)
        self.pod_observer = PodObserver(self.table, self.lifecycle)
        self.node_observer = NodeObserver(self.table, self.pod_observer)

    def settle(self) -> None:
        """Leaves changed hands: count what could not be counted, and who lacks devices again."""
        self.pod_observer.count_freed()
        self.node_observer.mark_short()


class Engine:
    """Plans, applies, observes. Without a topology all nodes are open to everybody."""

    def __init__(self, *, lease_seconds: float, topology: Topology | None = None) -> None:
        self._lease_seconds = lease_seconds
        self._components = _Components(topology, lease_seconds=lease_seconds)

    @property
    def _table(self) -> AllocationTable:
        return self._components.table

    # -- deciding

    def plan(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float = 0.0
    ) -> Decision:
        """Decide where a member goes, among the nodes that kube-scheduler offers it.

        Deterministic, and changes nothing. `now` is part of the contract; no rule needs it yet.
        """
        known = self._components.lifecycle.gang_of.get(request.member, request.gang)
        if known != request.gang:
            return wording.other_gang(request, known)
        return self._components.planner.plan(request, candidate_nodes)

    def apply(self, decision: Decision, *, now: float) -> None:
        """Make a decision of `plan` true; ConflictError, and no change, if it is out of date."""
        self._components.applier.apply(decision, now=now)
        self._components.settle()

    def renew(self, key: GangKey, *, now: float) -> None:
        """Let a gang's lease begin anew, as if it had just been planned."""
        gang = self._table.gangs.get(key)
        if gang is not None:
            gang.lease_expires = now + self._lease_seconds

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = self._components.lifecycle.expire(now=now)
        self._components.settle()
        return expired

    # -- observing

    def observe_node(self, node: NodeCell) -> None:
        """A node joined or changed."""
        self._components.node_observer.observe(node)
        self._components.settle()

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._components.node_observer.forget(name)
        self._components.settle()

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
        self._components.pod_observer.observe(PlacedMember(request=request, placement=whole))
        self._components.settle()

    def recover(
        self,
        running: Sequence[PlacedMember],
        *,
        released: Sequence[PlacedMember] = (),
        now: float = 0.0,
    ) -> list[PodUid]:
        """Take in all that runs and all that was released to run, once, after a start.

        1. Nodes are observed before or after; the outcome is the same.
        2. `running`, bound pods, are facts, and all are taken in: gangs of high priority claim
           their preassigned cells first, then by name, in whatever order the pods were listed. Who
           was downgraded before the start is guaranteed again where its VC has cells left for it
           (as in HiveD), at the expense of gangs of lower priority perhaps, never of a promise.
        3. `released`, pods that carry a placement and are not bound yet, get a new lease on exactly
           those leaf cells, where nobody runs, and where the promises to all VCs can be kept. On a
           node that is not known yet that is looked at when it joins.

        Returns the released members that have no place: they ask again, like any other. What was
        being preempted is forgotten; who preempted asks again.
        """
        return run_to_end(self.recover_stepwise(running, released=released, now=now))

    def recover_stepwise(
        self, running: Sequence[PlacedMember], *, released: Sequence[PlacedMember], now: float
    ) -> Stepwise[list[PodUid]]:
        """Do the same bit by bit: looks are welcome meanwhile, changes are not."""
        for bound in sorted(running, key=recovery_order):
            self._components.pod_observer.observe(bound)
            yield
        adopter = Adopter(self._table, self._components.lifecycle, self._components.pod_observer)
        expires, lost = now + self._lease_seconds, []
        for bound in sorted(released, key=recovery_order):
            if not adopter.lease(bound, expires=expires):
                lost.append(bound.request.member)
            yield
        self._components.settle()
        return lost

    def observe_ending(self, member: PodUid) -> bool:
        """A member that runs was told to end, and holds its place until it has.

        False if that is known, or it does not run: nothing changes.
        """
        return self._components.lifecycle.observe_ending(member)

    def observe_overdue(self, member: PodUid) -> bool:
        """A member that was told to end takes too long: it counts like one that was not told.

        False if nobody was told so of it: nothing changes.
        """
        return self._components.lifecycle.observe_overdue(member)

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted, or a waiting one was withdrawn."""
        self._components.lifecycle.forget_member(member)
        self._components.settle()

    # -- changing the topology

    def explain_topology(self, topology: Topology) -> list[GangEffect]:
        """Say what a new topology would do to each gang; changes nothing."""
        return self._rebuilt_on(topology)[1]

    def change_topology(self, topology: Topology) -> list[GangEffect]:
        """Work on a new topology from now on, with all that runs; says what that did."""
        self._components, done = self._rebuilt_on(topology)
        return done

    def follow_topology(self, topology: Topology) -> list[GangEffect]:
        """Do the same at the cost of what is different; says what that did where it did anything.

        Where gangs have to make way for others, all are taken over as by `change_topology`.
        """
        components, before = self._components, self._components.topology
        if before is None:
            return self.change_topology(topology)
        follower = TopologyUpdater(
            components.table, components.registry, components.lifecycle, components.node_observer
        )
        try:
            follower.follow(before, topology)
        except FullReplayNeeded:
            gangs = {**components.table.gangs, **follower.before}
            self._components, done = self._rebuilt(list(gangs.values()), topology)
            return done
        components.topology = topology
        components.settle()
        return list(effects(list(follower.before.values()), components.table.gangs))

    def rerank(self, priorities: Mapping[GangKey, int]) -> list[GangEffect]:
        """Let gangs count at other priorities from now on, where they are; says what that did."""
        self._components, done = self._rebuilt_on(self._components.topology, priorities)
        return done

    def _rebuilt_on(
        self, topology: Topology | None, priorities: Mapping[GangKey, int] = NO_CHANGE
    ) -> tuple[_Components, list[GangEffect]]:
        """What this engine would be on another topology, and what becomes of each gang."""
        before = [ranked(gang, priorities) for gang in self._table.gangs.values()]
        return self._rebuilt(before, topology)

    def _rebuilt(
        self, before: Sequence[PlacedGang], topology: Topology | None
    ) -> tuple[_Components, list[GangEffect]]:
        fresh = _Components(topology, lease_seconds=self._lease_seconds)
        for _, node in sorted(self._components.node_observer.known.items()):
            fresh.node_observer.observe(node)
        Adopter(fresh.table, fresh.lifecycle, fresh.pod_observer).adopt_all(replay_order(before))
        fresh.node_observer.mark_short()
        return fresh, list(effects(before, fresh.table.gangs))

    # -- looking

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed, bound or not."""
        slot = self._slot_of(member)
        return slot_placement(slot) if slot else None

    def has_place(self, member: PodUid) -> bool:
        """Whether a member was placed: cheaper than to ask where."""
        return self._slot_of(member) is not None

    def _slot_of(self, member: PodUid) -> MemberSlot | None:
        key = self._components.lifecycle.gang_of.get(member)
        return self._table.gangs[key].slot_of(member) if key else None

    def nodes_stepwise(self) -> Stepwise[list[tuple[NodeCell, Holders]]]:
        """All nodes with the holders of their leaf cells, by name, bit by bit."""
        return listings.list_nodes(self._table, self._components.node_observer.known)

    def gangs_stepwise(self) -> Stepwise[list[GangView]]:
        """All gangs that have leaf cells or have reserved them, by key, bit by bit."""
        return listings.list_gangs(self._table)

    def cells_stepwise(self) -> Stepwise[list[state_views.CellView]]:
        """All physical cells, as trees, bit by bit."""
        return listings.list_cells(self._table)

    def vcs_stepwise(self) -> Stepwise[dict[VcName, state_views.VcView]]:
        """All VCs with their preassigned cells, bit by bit."""
        return listings.list_vcs(self._table)

    def nodes(self) -> list[tuple[NodeCell, Holders]]:
        """All nodes with the holders of their leaf cells, by name."""
        return run_to_end(self.nodes_stepwise())

    def gang(self, key: GangKey) -> GangView | None:
        """One gang, if it has leaf cells or has reserved them."""
        gang = self._table.gangs.get(key)
        return state_views.view_gang(gang) if gang else None

    def gangs(self) -> list[GangView]:
        """All gangs that have leaf cells or have reserved them, by key."""
        return run_to_end(self.gangs_stepwise())

    def is_preempting(self, key: GangKey) -> bool:
        """Whether cells are reserved for a gang, or for late members, until victims have ended."""
        gang = self._table.gangs.get(key)
        return gang is not None and bool(gang.reserved_slots())

    def cells(self) -> list[state_views.CellView]:
        """All physical cells, as trees."""
        return run_to_end(self.cells_stepwise())

    def vcs(self) -> dict[VcName, state_views.VcView]:
        """All VCs with their preassigned cells."""
        return run_to_end(self.vcs_stepwise())

    def check(self) -> None:
        """Check every invariant; InvariantError is our bug."""
        run_to_end(self.check_stepwise())

    def check_stepwise(self) -> Stepwise[None]:
        """Do the same bit by bit, while nothing changes."""
        yield from invariants.check_stepwise(
            self._table, self._components.registry, self._components.lifecycle.gang_of
        )
        if not self._components.planner.audit():
            raise InvariantError("what is remembered of bins and gangs does not agree with them")
