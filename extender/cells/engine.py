"""The engine: who has which leaf cell, and who may have which next.

The first member that asks makes the engine find room for its whole gang; the places of the members
that have not asked yet are held by the gang's *lease*. Each later member takes one of them. A lease
that nobody uses in time expires, and what was not bound under it is free again.
"""

from collections.abc import Collection, Mapping, Sequence

from extender.cells.answers import reject
from extender.cells.decide.applier import Applier
from extender.cells.decide.decider import Planner
from extender.cells.model import (
    Decision,
    GangView,
    MemberRequest,
    NodeCell,
    Placement,
    ReasonCode,
)
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.bound_pods import Bound, Observer, OutOfPlace, recovery_order
from extender.cells.observe.lifecycle import Lives
from extender.cells.observe.node_changes import Follower
from extender.cells.observe.nodes import Joiner
from extender.cells.observe.reconfiguration import (
    NO_CHANGE,
    GangEffect,
    effects,
    ranked,
    replay_order,
)
from extender.cells.state.gangs import Gang, Slot
from extender.cells.state.placements import slot_placement
from extender.cells.state.registry import Registry
from extender.cells.state.table import Table
from extender.cells.views import invariants, listings, shapes
from extender.cells.views.listings import Holders, Look, at_once
from policy.errors import InvariantError
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import Topology


class _Parts:
    """All that works on one topology; a new topology gets new ones."""

    def __init__(self, topology: Topology | None, *, lease_seconds: float) -> None:
        self.topology = topology
        self.table = Table(topology)
        self.registry = Registry()
        self.lives = Lives(self.table, self.registry)
        self.planner = Planner(self.table, self.registry)
        self.applier = Applier(self.table, self.lives, lease_seconds=lease_seconds)
        self.observer = Observer(self.table, self.lives)
        self.joiner = Joiner(self.table, self.observer)

    def settle(self) -> None:
        """Leaves changed hands: count what could not be counted, and who lacks devices again."""
        self.observer.count_freed()
        self.joiner.mark_short()


class Engine:
    """Plans, applies, observes. Without a topology all nodes are open to everybody."""

    def __init__(self, *, lease_seconds: float, topology: Topology | None = None) -> None:
        self._lease_seconds = lease_seconds
        self._parts = _Parts(topology, lease_seconds=lease_seconds)

    @property
    def _table(self) -> Table:
        return self._parts.table

    # -- deciding

    def plan(
        self, request: MemberRequest, *, candidate_nodes: Collection[NodeName], now: float = 0.0
    ) -> Decision:
        """Decide where a member goes, among the nodes that kube-scheduler offers it.

        Deterministic, and changes nothing. `now` is part of the contract; no rule needs it yet.
        """
        known = self._parts.lives.gang_of.get(request.member, request.gang)
        if known != request.gang:
            told = {"pod": request.member, "known": str(known)}
            return reject(request, ReasonCode.GANG_MISMATCH, **told)
        return self._parts.planner.plan(request, candidate_nodes)

    def apply(self, decision: Decision, *, now: float) -> None:
        """Make a decision of `plan` true; ConflictError, and no change, if it is out of date."""
        self._parts.applier.apply(decision, now=now)
        self._parts.settle()

    def renew(self, key: GangKey, *, now: float) -> None:
        """Let a gang's lease begin anew, as if it had just been planned."""
        gang = self._table.gangs.get(key)
        if gang is not None:
            gang.lease_expires = now + self._lease_seconds

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = self._parts.lives.expire(now=now)
        self._parts.settle()
        return expired

    # -- observing

    def observe_node(self, node: NodeCell) -> None:
        """A node joined or changed."""
        self._parts.joiner.observe(node)
        self._parts.settle()

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._parts.joiner.forget(name)
        self._parts.settle()

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
        self._parts.observer.observe(Bound(request=request, placement=whole))
        self._parts.settle()

    def recover(
        self, running: Sequence[Bound], *, released: Sequence[Bound] = (), now: float = 0.0
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
        return at_once(self.recovering(running, released=released, now=now))

    def recovering(
        self, running: Sequence[Bound], *, released: Sequence[Bound], now: float
    ) -> Look[list[PodUid]]:
        """Do the same bit by bit: looks are welcome meanwhile, changes are not."""
        for bound in sorted(running, key=recovery_order):
            self._parts.observer.observe(bound)
            yield
        adopter = Adopter(self._table, self._parts.lives, self._parts.observer)
        expires, lost = now + self._lease_seconds, []
        for bound in sorted(released, key=recovery_order):
            if not adopter.lease(bound, expires=expires):
                lost.append(bound.request.member)
            yield
        self._parts.settle()
        return lost

    def observe_ending(self, member: PodUid) -> bool:
        """A member that runs was told to end, and holds its place until it has.

        False if that is known, or it does not run: nothing changes.
        """
        return self._parts.lives.observe_ending(member)

    def observe_overdue(self, member: PodUid) -> bool:
        """A member that was told to end takes too long: it counts like one that was not told.

        False if nobody was told so of it: nothing changes.
        """
        return self._parts.lives.observe_overdue(member)

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted, or a waiting one was withdrawn."""
        self._parts.lives.forget_member(member)
        self._parts.settle()

    # -- changing the topology

    def explain_topology(self, topology: Topology) -> list[GangEffect]:
        """Say what a new topology would do to each gang; changes nothing."""
        return self._moved_to(topology)[1]

    def change_topology(self, topology: Topology) -> list[GangEffect]:
        """Work on a new topology from now on, with all that runs; says what that did."""
        self._parts, done = self._moved_to(topology)
        return done

    def follow_topology(self, topology: Topology) -> list[GangEffect]:
        """Do the same at the cost of what is different; says what that did where it did anything.

        Where gangs have to make way for others, all are taken over as by `change_topology`.
        """
        parts, before = self._parts, self._parts.topology
        if before is None:
            return self.change_topology(topology)
        follower = Follower(parts.table, parts.registry, parts.lives, parts.joiner)
        try:
            follower.follow(before, topology)
        except OutOfPlace:
            gangs = {**parts.table.gangs, **follower.before}
            self._parts, done = self._moved(list(gangs.values()), topology)
            return done
        parts.topology = topology
        parts.settle()
        return list(effects(list(follower.before.values()), parts.table.gangs))

    def rerank(self, priorities: Mapping[GangKey, int]) -> list[GangEffect]:
        """Let gangs count at other priorities from now on, where they are; says what that did."""
        self._parts, done = self._moved_to(self._parts.topology, priorities)
        return done

    def _moved_to(
        self, topology: Topology | None, priorities: Mapping[GangKey, int] = NO_CHANGE
    ) -> tuple[_Parts, list[GangEffect]]:
        """What this engine would be on another topology, and what becomes of each gang."""
        before = [ranked(gang, priorities) for gang in self._table.gangs.values()]
        return self._moved(before, topology)

    def _moved(
        self, before: Sequence[Gang], topology: Topology | None
    ) -> tuple[_Parts, list[GangEffect]]:
        fresh = _Parts(topology, lease_seconds=self._lease_seconds)
        for _, node in sorted(self._parts.joiner.known.items()):
            fresh.joiner.observe(node)
        Adopter(fresh.table, fresh.lives, fresh.observer).adopt_all(replay_order(before))
        fresh.joiner.mark_short()
        return fresh, list(effects(before, fresh.table.gangs))

    # -- looking

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed, bound or not."""
        slot = self._slot_of(member)
        return slot_placement(slot) if slot else None

    def has_place(self, member: PodUid) -> bool:
        """Whether a member was placed: cheaper than to ask where."""
        return self._slot_of(member) is not None

    def _slot_of(self, member: PodUid) -> Slot | None:
        key = self._parts.lives.gang_of.get(member)
        return self._table.gangs[key].slot_of(member) if key else None

    def look_at_nodes(self) -> Look[list[tuple[NodeCell, Holders]]]:
        """All nodes with the holders of their leaf cells, by name, bit by bit."""
        return listings.look_at_nodes(self._table, self._parts.joiner.known)

    def look_at_gangs(self) -> Look[list[GangView]]:
        """All gangs that have leaf cells or have reserved them, by key, bit by bit."""
        return listings.look_at_gangs(self._table)

    def look_at_cells(self) -> Look[list[shapes.CellView]]:
        """All physical cells, as trees, bit by bit."""
        return listings.look_at_cells(self._table)

    def look_at_vcs(self) -> Look[dict[VcName, shapes.VcView]]:
        """All VCs with their preassigned cells, bit by bit."""
        return listings.look_at_vcs(self._table)

    def nodes(self) -> list[tuple[NodeCell, Holders]]:
        """All nodes with the holders of their leaf cells, by name."""
        return at_once(self.look_at_nodes())

    def gang(self, key: GangKey) -> GangView | None:
        """One gang, if it has leaf cells or has reserved them."""
        gang = self._table.gangs.get(key)
        return shapes.view_gang(gang) if gang else None

    def gangs(self) -> list[GangView]:
        """All gangs that have leaf cells or have reserved them, by key."""
        return at_once(self.look_at_gangs())

    def is_preempting(self, key: GangKey) -> bool:
        """Whether cells are reserved for a gang, or for late members, until victims have ended."""
        gang = self._table.gangs.get(key)
        return gang is not None and bool(gang.reserved_slots())

    def cells(self) -> list[shapes.CellView]:
        """All physical cells, as trees."""
        return at_once(self.look_at_cells())

    def vcs(self) -> dict[VcName, shapes.VcView]:
        """All VCs with their preassigned cells."""
        return at_once(self.look_at_vcs())

    def check(self) -> None:
        """Check every invariant; InvariantError is our bug."""
        at_once(self.checking())

    def checking(self) -> Look[None]:
        """Do the same bit by bit, while nothing changes."""
        yield from invariants.checking(self._table, self._parts.registry, self._parts.lives.gang_of)
        if not self._parts.planner.audit():
            raise InvariantError("what is remembered of bins and gangs does not agree with them")
