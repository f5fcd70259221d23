"""The engine as the planner uses it, where every member that has a place runs at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from extender.cells.answers import with_facts
from extender.cells.engine import Engine
from extender.cells.freed_cells import FreedCells, freed_by
from extender.cells.model import (
    NO_FACTS,
    NO_LIMITS,
    Decision,
    MemberRequest,
    Part,
    PlacedMember,
    Seat,
    Victims,
    WaitFacts,
)
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from timemachine.model import World

_LEASE_SECONDS: Final = 3600.0


def build_engine(world: World) -> Engine:
    """Build the engine of a world in which nothing runs."""
    engine = Engine(lease_seconds=_LEASE_SECONDS, topology=world.topology)
    for node in world.nodes:
        engine.observe_node(node)
    return engine


class WorldCells:
    """Implements `extender.queue.ports.Cells`; what runs is known without asking the engine."""

    def __init__(self, engine: Engine, topology: Topology | None) -> None:
        self._engine = engine
        self._topology = topology
        self._bound: dict[PodUid, MemberRequest] = {}
        """Members that run."""
        self._members: dict[GangKey, dict[PodUid, None]] = {}
        self.asked = 0
        """How many decisions were made."""
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
        """Decide about a member; nothing changes."""
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
        """Apply what `plan` decided last; return it with its final reason."""
        self._engine.apply(decision, now=now)
        return with_facts(decision, facts)

    def bind(self, request: MemberRequest, placement: Placement) -> None:
        """Run a member in its place."""
        self._engine.observe_bound(PlacedMember(request=request, placement=placement))
        self._bound[request.member] = request
        self._members.setdefault(request.gang, {})[request.member] = None

    def forget_member(self, member: PodUid) -> None:
        """End a member, or withdraw its place."""
        self._engine.forget_member(member)
        request = self._bound.pop(member, None)
        if request is not None:
            of_gang = self._members[request.gang]
            del of_gang[member]
            if not of_gang:
                del self._members[request.gang]

    def freed_by(self, request: MemberRequest) -> FreedCells | None:
        """Return what becomes free when a member leaves its place; None if that may be anything."""
        return freed_by(request, self.placement(request.member), self._topology)

    def is_bound(self, member: PodUid) -> bool:
        """Tell whether a member runs."""
        return member in self._bound

    def is_foreign(self, member: PodUid) -> bool:
        """Tell that no member runs in a place that we did not give it."""
        return False

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """Return the members of a gang that run."""
        return self._members.get(gang, {})
