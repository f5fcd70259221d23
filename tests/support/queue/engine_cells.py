"""An engine as the planner uses it."""

from collections.abc import Callable, Collection, Mapping, Sequence

from extender.cells.answers import with_facts
from extender.cells.engine import Engine
from extender.cells.model import (
    NO_FACTS,
    NO_LIMITS,
    Decision,
    MemberRequest,
    Part,
    Preempt,
    Seat,
    Victims,
    WaitFacts,
)
from policy.submission import GangKey, NodeName, PodUid


class EngineCells:
    """Implements `extender.queue.ports.Cells`."""

    def __init__(
        self,
        engine: Engine,
        being_bound: Collection[PodUid],
        *,
        may_preempt: Callable[[PodUid], bool] = lambda _: True,
    ) -> None:
        self._engine = engine
        self._may_preempt = may_preempt
        self.on_leave: Callable[[PodUid], None] = lambda _: None
        """Called before a member loses its place."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when members have got or lost places."""
        self._being_bound = being_bound
        self.asked = 0
        self.renew = engine.renew
        self.is_ready = engine.is_ready
        self.placement = engine.placement
        self.has_place = engine.has_place
        self.is_preempting = engine.is_preempting
        self.known_sizes = engine.known_sizes
        self.domain = engine.domain
        self.holders = engine.holders
        self.shadow = engine.shadow
        self.moves = engine.moves
        self.view_seats = engine.view_seats
        self.count_kept = engine.count_kept
        self.kept_cells = engine.kept_cells
        self.most_leaf_cells = engine.most_leaf_cells
        self.victim_priority = engine.victim_priority

    def plan(
        self,
        request: MemberRequest,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        victims: Victims = Victims.BEST,
    ) -> Decision:
        self.asked += 1
        return self._engine.plan(
            request,
            candidate_nodes=candidate_nodes,
            now=now,
            limits=limits,
            parts=parts,
            kept=kept,
            victims=victims,
        )

    def apply(
        self,
        decision: Decision,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        facts: WaitFacts = NO_FACTS,
    ) -> Decision:
        is_reserving = isinstance(decision, Preempt) and bool(decision.seats)
        if not is_reserving or self._may_preempt(decision.request.member):
            self._engine.apply(decision, now=now)
        self.on_change()
        return with_facts(decision, facts)

    def forget_member(self, member: PodUid) -> None:
        self.on_leave(member)
        self._engine.forget_member(member)
        self.on_change()

    def is_bound(self, member: PodUid) -> bool:
        slot = self._engine._slot_of(member)
        return (slot is not None and slot.is_bound) or member in self._being_bound

    def is_foreign(self, member: PodUid) -> bool:
        return False  # all pods of this world are planned

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        view = self._engine.gang(gang)
        return list(view.members) if view is not None else []
