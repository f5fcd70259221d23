"""The engine with its inputs and its log: all changes of the engine's state go through `Cluster`.

`Cluster` passes on what Kubernetes reports, asks the engine for decisions and applies them, and
writes each step to the journal. It is deterministic: a replay feeds the logged rows to a second
`Cluster` and gets the same decisions. There is one writer, and nothing is awaited.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from extender.cells.answers import with_facts
from extender.cells.engine import Engine
from extender.cells.model import (
    NO_MEMBER,
    Decision,
    MemberRequest,
    Place,
    PlacedMember,
    Preempt,
    Reject,
    Wait,
)
from extender.cells.views.listings import Stepwise
from extender.cluster.journal import DecisionContext, Journal
from extender.cluster.members import Member
from extender.cluster.shape import ShapedCluster
from policy.submission import GangKey, NodeName, PodUid
from service.memory import BoundedMap

_MOST_REMEMBERED: Final = 200_000
"""Members whose last refusal is remembered: more than the pods of a large cluster."""


class Cluster(ShapedCluster):
    """The engine with everything that it is told and asked."""

    def __init__(self, *, lease_seconds: float, journal: Journal) -> None:
        super().__init__(Engine(lease_seconds=lease_seconds), journal)
        self._lease_seconds = lease_seconds
        self.journal.begin(lease_seconds=lease_seconds)
        self._last_refusals: BoundedMap[PodUid, str] = BoundedMap(_MOST_REMEMBERED)
        self._overdue: set[PodUid] = set()
        self.on_expiry: list[Callable[[Sequence[GangKey]], None]] = []
        """Callbacks that run when the leases of gangs have expired."""
        self.on_overdue: list[Callable[[GangKey], None]] = []
        """Callbacks that run when a gang that was told to end takes too long."""

    def write_to(self, journal: Journal) -> None:
        """Write to another journal from now on, the known nodes first: a leadership term begins."""
        self.journal = journal
        journal.begin(lease_seconds=self._lease_seconds)
        for node in self.nodes.values():
            journal.observe_node(node)

    # -- pods

    def recover_stepwise(
        self, running: Sequence[PlacedMember], *, released: Sequence[PlacedMember], now: float
    ) -> Stepwise[None]:
        """Take in all members that run or were released; nothing else may change meanwhile."""
        for one in running:
            self.journal.prepare(one)
            yield
        for one in released:
            self.journal.prepare_released(one)
        self.journal.recover(len(running) + len(released), now=now)
        lost = dict.fromkeys(
            (yield from self._engine.recover_stepwise(running, released=released, now=now))
        )
        for one in running:
            self._join_bound(one)
            yield
        for one in released:
            if one.request.member not in lost:
                self._join(Member(request=one.request, placement=one.placement, is_bound=False))
        self.version += 1

    def observe_bound(self, running: PlacedMember) -> None:
        """A member runs on a node, whether we placed it there or not."""
        self.journal.observe_bound(running)
        self._engine.observe_bound(running)
        self._join_bound(running)
        self.version += 1

    def touch(self) -> None:
        """Something has changed that requests depend on and the engine does not hold."""
        self.version += 1

    def observe_ending(self, member: PodUid) -> None:
        """A member that runs was told to end. Nothing happens if that is known."""
        if member not in self._overdue and self._engine.observe_ending(member):
            self.journal.observe_ending(member)
            self.version += 1

    def observe_overdue(self, member: PodUid) -> None:
        """A member that was told to end takes too long: decisions no longer rely on its end."""
        known = self.members.get(member)
        if known is not None and self._engine.observe_overdue(member):
            self._overdue.add(member)
            self.journal.observe_overdue(member)
            self.version += 1
            for notify in self.on_overdue:
                notify(known.request.gang)

    def observe_budget(self, gang: GangKey, *, breaks: bool) -> None:
        """Ending a gang breaks a PodDisruptionBudget, or not any more."""
        if self._engine.observe_budget(gang, breaks=breaks):
            self.journal.observe_budget(gang, breaks=breaks)
            self.version += 1

    def observe_minimum_run(self, gang: GangKey, *, seconds: int) -> None:
        """A gang has begun a minimum run of some seconds; 0: it is over, so others may fit."""
        if not self._engine.observe_minimum_run(gang, seconds=seconds):
            return
        self.journal.observe_minimum_run(gang, seconds=seconds)
        self.version += 1
        if not seconds:
            for uid in self.members.of_gang(gang)[:1]:
                self.notify_room(self.freed_by(uid))

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted."""
        freed = self.freed_by(member)
        self.journal.forget_member(member)
        self._engine.forget_member(member)
        self._overdue.discard(member)
        self._last_refusals.pop(member, None)
        self.members.remove(member)
        self.version += 1
        self.notify_room(freed)

    def renew(self, gang: GangKey, *, now: float) -> None:
        """Start a gang's lease again."""
        self.journal.renew(gang, now=now)
        self._engine.renew(gang, now=now)

    def _join_bound(self, running: PlacedMember) -> None:
        placement = self._engine.placement(running.request.member) or running.placement
        is_foreign = not running.placement.leaf_cells
        self._join(
            Member(
                request=running.request, placement=placement, is_bound=True, is_foreign=is_foreign
            )
        )

    def _join(self, member: Member) -> None:
        self.members.add(member)
        self._last_refusals.pop(member.request.member, None)

    # -- deciding

    def decide(
        self,
        request: MemberRequest,
        *,
        candidate_nodes: Collection[NodeName],
        context: DecisionContext,
    ) -> Decision:
        """Plan, apply the decision, and log it."""
        decision = self.plan(
            request,
            candidate_nodes=candidate_nodes,
            now=context.now,
            limits=context.limits,
            parts=context.parts,
            kept=context.kept,
        )
        return self.apply(decision, candidate_nodes=candidate_nodes, context=context)

    def apply(
        self, decision: Decision, *, candidate_nodes: Collection[NodeName], context: DecisionContext
    ) -> Decision:
        """Apply what `plan` decided, before anything else changes, and log it.

        Returns the decision, with the reason that is logged.
        """
        decision, request = with_facts(decision, context.facts), decision.request
        # A preemption without seats only extends what is reserved already.
        reserves = isinstance(decision, Preempt) and bool(decision.seats)
        is_applied = context.applies_preemption or not reserves
        if is_applied:
            self._engine.apply(decision, now=context.now)
        if isinstance(decision, Place) and request.member != NO_MEMBER:
            # The cell of its VC that it counts against is known only after `apply`.
            placement = self._engine.placement(request.member) or decision.placement
            self._join(Member(request=request, placement=placement, is_bound=False))
        if not self._is_news(decision):
            return decision
        self.version += is_applied and not isinstance(decision, Reject)
        self.journal.decide(decision, candidate_nodes=candidate_nodes, context=context)
        return decision

    def _is_news(self, decision: Decision) -> bool:
        """Tell whether a decision must be logged: a repeated refusal changes nothing."""
        member = decision.request.member
        if not isinstance(decision, Wait | Reject) or getattr(decision, "cancels_own", False):
            self._last_refusals.pop(member, None)
            return True
        if self._last_refusals.get(member) == decision.reason.text:
            return False
        self._last_refusals[member] = decision.reason.text
        return True

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time."""
        expired = self._engine.expire(now=now)
        if expired:
            self.journal.expire(expired, now=now)
            for uid in [uid for gang in expired for uid in self.members.of_gang(gang)]:
                if not self._engine.has_place(uid):
                    self.members.remove(uid)
            self.version += 1
            for notify in self.on_expiry:
                notify(expired)
        return expired
