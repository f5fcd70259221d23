"""An engine as the planner uses it, in which every member that has a place runs at once."""

from collections.abc import Collection, Mapping, Sequence

from extender.cells.answers import for_lack, for_reservation
from extender.cells.engine import Engine
from extender.cells.model import NO_LIMITS, Decision, MemberRequest, Part, PlacedMember, Seat
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import GangKey, NodeName, PodUid


class ReplayedCells:
    """Implements `extender.queue.ports.Cells`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bound: dict[PodUid, GangKey] = {}
        self._members: dict[GangKey, dict[PodUid, None]] = {}
        self.plans = 0
        self.renew = engine.renew
        self.is_ready = engine.is_ready
        self.placement = engine.placement
        self.has_place = engine.has_place
        self.is_preempting = engine.is_preempting
        self.known_sizes = engine.known_sizes
        self.domain = engine.domain
        self.holders = engine.holders
        self.shadow = engine.shadow
        self.view_seats = engine.view_seats
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
    ) -> Decision:
        """Decide about a member."""
        self.plans += 1
        return self._engine.plan(
            request, candidate_nodes=candidate_nodes, now=now, limits=limits, parts=parts, kept=kept
        )

    def apply(
        self,
        decision: Decision,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        shortage: Shortage | None = None,
        kept: Sequence[Seat] = (),
        reserved_for: GangKey | None = None,
    ) -> Decision:
        """Apply a decision."""
        self._engine.apply(decision, now=now)
        return for_reservation(for_lack(decision, shortage), reserved_for)

    def bind(self, request: MemberRequest, placement: Placement) -> None:
        """Run a member in its place."""
        self._engine.observe_bound(PlacedMember(request=request, placement=placement))
        self._bound[request.member] = request.gang
        self._members.setdefault(request.gang, {})[request.member] = None

    def forget_member(self, member: PodUid) -> None:
        """End a member, or withdraw its place."""
        self._engine.forget_member(member)
        gang = self._bound.pop(member, None)
        if gang is not None:
            del self._members[gang][member]
            if not self._members[gang]:
                del self._members[gang]

    def is_bound(self, member: PodUid) -> bool:
        """Tell whether a member runs."""
        return member in self._bound

    def is_foreign(self, member: PodUid) -> bool:
        """Tell whether a member runs in a place that the engine did not give it: none does."""
        return False

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """Return the members of a gang that run."""
        return self._members.get(gang, {})
