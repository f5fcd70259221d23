"""An engine as the planner uses it, in which every member that has a place runs at once."""

from collections.abc import Collection

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, PlacedMember
from policy.placement import Placement
from policy.submission import GangKey, PodUid
from tests.support.queue.engine_cells import EngineCells


class ReplayedCells(EngineCells):
    """Implements `extender.queue.ports.Cells`; what runs is known without asking the engine."""

    def __init__(self, engine: Engine) -> None:
        self._bound: dict[PodUid, GangKey] = {}
        self._members: dict[GangKey, dict[PodUid, None]] = {}
        super().__init__(engine, self._bound)

    def bind(self, request: MemberRequest, placement: Placement) -> None:
        """Run a member in its place."""
        self._engine.observe_bound(PlacedMember(request=request, placement=placement))
        self._bound[request.member] = request.gang
        self._members.setdefault(request.gang, {})[request.member] = None

    def forget_member(self, member: PodUid) -> None:
        """End a member, or withdraw its place."""
        super().forget_member(member)
        gang = self._bound.pop(member, None)
        if gang is not None:
            del self._members[gang][member]
            if not self._members[gang]:
                del self._members[gang]

    def is_bound(self, member: PodUid) -> bool:
        """Tell whether a member runs."""
        return member in self._bound

    def members_of(self, gang: GangKey) -> Collection[PodUid]:
        """Return the members of a gang that run."""
        return self._members.get(gang, {})
