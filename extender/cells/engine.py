"""The engine's public methods: plan, apply, observe, recover, views.

The request of a gang's first member makes the engine find cells for the whole gang. The *lease* of
the gang holds the places of the other members until they ask, and each takes one of them. A lease
that is not used in time expires, and places without a bound member become free.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from extender.cells.answers import reject
from extender.cells.components import Components
from extender.cells.engine_views import EngineViews
from extender.cells.model import (
    NO_LIMITS,
    NONE_KEPT,
    Decision,
    KeptCells,
    MemberRequest,
    MovableGang,
    Moves,
    NodeCell,
    Part,
    Place,
    PlacedMember,
    Preempt,
    ReasonCode,
    Seat,
    Shadow,
    Victims,
)
from extender.cells.observe.adoption import Adopter
from extender.cells.observe.bound_pods import recovery_order
from extender.cells.observe.node_changes import TopologyUpdater
from extender.cells.observe.reconfiguration import Changed, GangEffect, compared, effects, summed
from extender.cells.observe.reranking import PriorityChange
from extender.cells.rebuild import Rebuild
from extender.cells.views.listings import Stepwise, run_to_end
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology


class Engine(EngineViews):
    """Decides on gangs and keeps their state; without a topology every gang may use every node."""

    def __init__(
        self,
        *,
        lease_seconds: float,
        topology: Topology | None = None,
        reclaims_foreign: bool = False,
    ) -> None:
        """`reclaims_foreign` lets promises end foreign pods, by the admins' policy."""
        self._lease_seconds = lease_seconds
        self._reclaims_foreign = reclaims_foreign
        self._components = self._new_components(topology)
        if topology is not None:
            run_to_end(self._table.build_stepwise(topology))
        self._rebuild: Rebuild | None = None
        """The components that are being built beside the present ones."""

    def _new_components(self, topology: Topology | None) -> Components:
        seconds, reclaims = self._lease_seconds, self._reclaims_foreign
        return Components(topology, lease_seconds=seconds, reclaims_foreign=reclaims)

    # -- deciding

    def plan(
        self,
        request: MemberRequest,
        *,
        candidate_nodes: Collection[NodeName],
        now: float = 0.0,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        victims: Victims = Victims.BEST,
    ) -> Decision:
        """Decide where a member goes, among the candidate nodes of kube-scheduler.

        `limits` says of some nodes how many idle leaf cells the gang may use there at most. With
        `parts` each part of a new gang is placed on its own nodes. `kept` are seats of other gangs
        of its VC: it takes neither their leaf cells nor what they count against. A decision that
        does not look for the best victims is not to be applied. Changes nothing.
        """
        known = self._components.lifecycle.gang_of.get(request.member, request.gang)
        if known != request.gang:
            told = {"uid": request.member, "known": str(known)}
            return reject(request, ReasonCode.GANG_MISMATCH, **told)
        decider = self._components.decider
        return decider.plan(request, candidate_nodes, limits, parts, kept, victims=victims)

    def shadow(
        self,
        request: MemberRequest,
        *,
        ends: Iterable[tuple[GangKey, float]],
        candidate_nodes: Collection[NodeName],
        now: float,
        kept: Sequence[Seat] = (),
        may_preempt: bool = True,
        is_by_nodes: bool = False,
    ) -> Shadow | None:
        """Return when and where a gang without places could start if others end as expected.

        `ends` lists the gangs whose cells it may get, the first to end first; with `is_by_nodes` as
        `Shadow.ends` has them. Changes nothing.
        """
        return self._components.shadows.find(
            request,
            candidate_nodes,
            ends=ends,
            kept=kept,
            may_preempt=may_preempt,
            is_by_nodes=is_by_nodes,
            now=now,
        )

    def most_leaf_cells(self, request: MemberRequest, kept: KeptCells = NONE_KEPT) -> int | None:
        """An upper bound of the leaf cells that a gang without places can get; None: unknown."""
        return self._components.decider.most_leaf_cells(request, kept)

    def moves(
        self,
        request: MemberRequest,
        *,
        movable: Sequence[MovableGang],
        most_cost: float,
        candidate_nodes: Collection[NodeName],
        kept: Sequence[Seat] = (),
    ) -> Moves | None:
        """Return which opportunistic gangs could run elsewhere, so that another one fits.

        Changes nothing.
        """
        search = self._components.moves
        return search.find(
            request, candidate_nodes, movable=movable, most_cost=most_cost, kept=kept
        )

    def is_ready(self, request: MemberRequest) -> bool:
        """False if `plan` would first have to build an index of whole chains."""
        return self._components.decider.is_ready(request)

    def prepare_stepwise(self, request: MemberRequest) -> Stepwise[None]:
        """Build the indexes that `plan` will need."""
        return self._components.decider.prepare_stepwise(request)

    def apply(self, decision: Decision, *, now: float) -> None:
        """Carry out a decision of `plan`; ConflictError, and no change, if it is out of date."""
        is_change = isinstance(decision, Place | Preempt) or getattr(decision, "cancels_own", False)
        with self._changing(*([decision.request.gang] if is_change else [])):
            self._components.applier.apply(decision, now=now)
            self._components.settle()

    def renew(self, key: GangKey, *, now: float) -> None:
        """Extend the lease of a gang, as if it had just been planned."""
        if key in self._table.gangs:
            with self._changing(key):
                self._table.gangs[key].lease_expires = now + self._lease_seconds

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost slots."""
        with self._changing():
            expired = self._components.lifecycle.expire(now=now)
            self._components.settle()
            return expired

    @contextmanager
    def _changing(self, *gangs: GangKey) -> Iterator[None]:
        """Surround a change of these gangs, and perhaps of others: a rebuild has to know them."""
        if self._rebuild is None:
            yield
            return
        self._table.changes.watched = found = dict.fromkeys(gangs)
        try:
            yield
        finally:
            self._table.changes.watched = None
            self._rebuild.note_gang(*found)

    # -- observing

    def observe_node(self, node: NodeCell) -> None:
        """Take in a node that joined or changed."""
        with self._changing():
            self._components.node_observer.observe(node)
            self._components.settle()
        self._note_node(node.name)

    def forget_node(self, name: NodeName) -> None:
        """Take in that a node left."""
        with self._changing():
            self._components.node_observer.forget(name)
            self._components.settle()
        self._note_node(name)

    def _note_node(self, name: NodeName) -> None:
        if self._rebuild is not None:
            self._rebuild.note_node(name)

    def observe_bound(self, bound: PlacedMember) -> None:
        """Take in a member that runs on a node, whether or not the engine placed it.

        Its placement has no leaf cells if the engine did not place it; then it is counted on the
        lowest leaves of the node that no gang holds.
        """
        with self._changing(bound.request.gang):
            self._components.pod_observer.observe(bound)
            self._components.settle()

    def recover_stepwise(
        self, running: Sequence[PlacedMember], *, released: Sequence[PlacedMember], now: float
    ) -> Stepwise[list[PodUid]]:
        """Take in all bound and all released pods after a restart.

        Between the steps views may be read, but nothing may be changed.

        1. Nodes can be observed before or after; the result is the same.
        2. All bound pods (`running`) are taken in, whatever their order: gangs of high priority
           claim their preassigned cells first, then by name. A gang that was downgraded before the
           restart is guaranteed again if its VC has cells left for it (as in HiveD), perhaps at
           the expense of gangs of lower priority, never of a promise.
        3. Pods that carry a placement and are not bound yet (`released`) get a new lease on exactly
           these leaf cells if no pod runs there and all promises can be kept. If their node is not
           known yet, this is checked when it joins.

        Returns the released members that lost their placement: they are planned again. Preemptions
        are not recovered; gangs that were preempting are planned again.
        """
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
        """Take in that a bound member is terminating; it keeps its leaves until it has ended.

        False, and nothing changes, if this is known already or the member is not bound.
        """
        return self._set_ending(member, is_ending=True)

    def observe_overdue(self, member: PodUid) -> bool:
        """Take in that a member takes too long to end: it counts as not terminating again.

        False, and nothing changes, if it was not terminating.
        """
        return self._set_ending(member, is_ending=False)

    def _set_ending(self, member: PodUid, *, is_ending: bool) -> bool:
        lifecycle = self._components.lifecycle
        is_change = lifecycle.set_ending(member, is_ending=is_ending)
        if is_change and self._rebuild is not None:
            self._rebuild.note_gang(lifecycle.gang_of[member])
        return is_change

    def observe_budget(self, gang: GangKey, *, breaks: bool) -> bool:
        """Take in whether ending a gang breaks a PodDisruptionBudget: others are victims first.

        False, and nothing changes, if this is known already or the gang has no place.
        """
        is_change = self._components.lifecycle.set_breaks_budget(gang, breaks=breaks)
        if is_change and self._rebuild is not None:
            self._rebuild.note_gang(gang)
        return is_change

    def observe_minimum_run(self, gang: GangKey, *, seconds: int) -> bool:
        """Take in that a gang has begun a minimum run of some seconds; 0: it is over.

        Until then no gang of its own VC preempts it. False, and nothing changes, if this is known
        already or the gang has no place.
        """
        is_change = self._components.lifecycle.set_minimum_run(gang, seconds)
        if is_change and self._rebuild is not None:
            self._rebuild.note_gang(gang)
        return is_change

    def forget_member(self, member: PodUid) -> None:
        """Take in that a member ended or was deleted, also while it waited."""
        lifecycle = self._components.lifecycle
        with self._changing(*([lifecycle.gang_of[member]] if member in lifecycle.gang_of else [])):
            lifecycle.forget_member(member)
            self._components.settle()

    # -- changing the topology

    def change_topology(
        self, topology: Topology, *, reclaims_foreign: bool | None = None
    ) -> list[GangEffect]:
        """Use a new topology and take over all gangs; returns the effect on each gang."""
        steps = self.change_topology_stepwise(topology, reclaims_foreign=reclaims_foreign)
        return run_to_end(steps).effects

    def change_topology_stepwise(
        self, topology: Topology, *, reclaims_foreign: bool | None = None
    ) -> Stepwise[Changed]:
        """Build a new topology beside the present one, and use it with the last step.

        The engine may be used between the steps. `reclaims_foreign` changes the policy for foreign
        pods, too.
        """
        if reclaims_foreign is not None:
            self._reclaims_foreign = reclaims_foreign
        return self._replace(topology)

    def clear(self) -> None:
        """Forget the topology, all nodes and all gangs."""
        self._reclaims_foreign = False
        self._components = self._new_components(None)
        self._rebuild = None

    def update_topology(self, topology: Topology) -> list[GangEffect]:
        """Like `change_topology`, at a cost proportional to the difference."""
        return run_to_end(self.update_topology_stepwise(topology)).effects

    def update_topology_stepwise(
        self, topology: Topology, *, on_lost: Callable[[Sequence[PodUid]], None] = lambda _: None
    ) -> Stepwise[Changed]:
        """Like `change_topology_stepwise`, at a cost proportional to the difference.

        Returns the effects on gangs that were affected, some steps after `on_lost` was told which
        members have no place any more. If a gang would lose its cells to another one, all gangs are
        taken over as by `change_topology`.
        """
        components, before = self._components, self._components.topology
        updater = TopologyUpdater(
            components.table, components.registry, components.lifecycle, components.node_observer
        )
        if before is None or not updater.update(before, topology):
            done = yield from self._replace(topology)
            on_lost(done.lost)
            return done
        components.topology = topology
        components.settle()
        on_lost(updater.changed().lost)
        done = yield from updater.promote_stepwise()
        components.settle()
        return done

    def _replace(self, topology: Topology) -> Stepwise[Changed]:
        """Take over all gangs into new components, and use these."""
        fresh = self._new_components(topology)
        self._rebuild = Rebuild(self._components, fresh, gangs=self._table.gangs)
        done = yield from self._rebuild.steps()
        is_suspended = self._components.decider.preemption.is_suspended
        self._components, self._rebuild = fresh, None
        self.suspend_preemption(is_suspended=is_suspended)
        return done

    def rerank(self, priorities: Mapping[GangKey, int]) -> list[GangEffect]:
        """Change the priorities of some gangs on their leaves; returns the effects on gangs."""
        return run_to_end(self.rerank_stepwise(priorities)).effects

    def rerank_stepwise(self, priorities: Mapping[GangKey, int]) -> Stepwise[Changed]:
        """Change the priorities of some gangs on their leaves; suspend preemption meanwhile."""
        change = self._priority_change()
        yield from change.steps(priorities)
        self._components.settle()
        found = []
        for key, before in sorted(change.before.items()):
            found.append(compared(before, self._table.gangs.get(key)))
            yield
        return summed(found)

    def suspend_preemption(self, *, is_suspended: bool) -> None:
        """Plan without preemption for a while: not all gangs have their new priorities yet."""
        self._components.decider.preemption.is_suspended = is_suspended

    def raise_gang(self, key: GangKey, priority: int) -> list[GangEffect]:
        """Raise the priority of one gang on its leaves, at the cost of that gang.

        An opportunistic gang becomes guaranteed if unused cells of its VC cover its leaves; until
        then it counts as downgraded. Nothing happens to a gang of this or a higher priority.
        """
        gang = self._table.gangs.get(key)
        if gang is None or gang.request.priority >= priority:
            return []
        change = self._priority_change()
        with self._changing(key):
            change.raise_one(gang, priority)
            self._components.settle()
        return list(effects(list(change.before.values()), self._table.gangs))

    def _priority_change(self) -> PriorityChange:
        parts = self._components
        adopter = Adopter(parts.table, parts.lifecycle, parts.pod_observer)
        return PriorityChange(parts.table, parts.registry, parts.lifecycle, adopter)
