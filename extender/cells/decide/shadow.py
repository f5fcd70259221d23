"""When a gang could start, if the gangs that run end as expected.

Inside a what-if the gangs that hold cells are removed in the order in which they are expected to
end. After each of them quick bounds say whether the gang may fit; only then it is planned. So the
cost depends on the number of gangs that have to end, not on the size of the cluster. That number is
limited; where it is not enough, the gangs of one node after the other are removed instead.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from extender.cells.budget import SHADOW_ENDS, SHADOW_NODE_ENDS, SHADOW_STEPS, SearchBudget
from extender.cells.decide.decider import Decider
from extender.cells.decide.kept_seats import keep
from extender.cells.decide.refusals import refusal
from extender.cells.fit.demand import Candidates
from extender.cells.model import MemberRequest, Place, Preempt, Seat, Shadow
from extender.cells.preempt.preemption import node_of
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim, Vc
from policy.submission import GangKey, NodeName

Ends = Iterable[tuple[GangKey, float]]
"""Gangs and when each is expected to end, the first to end first."""


class ShadowSearch:
    """Finds the shadow time of a gang that has no places; all trials are undone."""

    def __init__(self, table: AllocationTable, decider: Decider) -> None:
        self._table = table
        self._decider = decider

    def find(
        self,
        request: MemberRequest,
        candidates: Candidates,
        *,
        ends: Ends,
        kept: Iterable[Seat] = (),
        may_preempt: bool = True,
        is_by_nodes: bool = False,
        now: float,
    ) -> Shadow | None:
        """Return when the gang could start and where; None if it could not even then.

        `kept` are the seats of other gangs of its VC that must stay usable for them. With
        `may_preempt` it may end victims then. With `is_by_nodes` the ends are in the order in which
        an earlier search removed gangs by their nodes.
        """
        known = self._table.gangs.get(request.gang)
        if known is not None or refusal(self._table, request, known) is not None:
            return None
        ends, kept = list(ends), list(kept)
        if not is_by_nodes:
            trial = _Trial(self._decider, request, candidates, may_preempt=may_preempt)
            found = self._first_fit(trial, ends[:SHADOW_ENDS], kept, now=now)
            if found is not None or len(ends) <= SHADOW_ENDS:
                return found
            ends = self._node_by_node(ends)
        trial = _Trial(self._decider, request, candidates, may_preempt=may_preempt)
        found = self._first_fit(trial, ends[:SHADOW_NODE_ENDS], kept, now=now)
        return None if found is None else replace(found, is_by_nodes=True)

    def _node_by_node(self, ends: Sequence[tuple[GangKey, float]]) -> list[tuple[GangKey, float]]:
        """Order ends so that whole nodes become empty, the first one first.

        Where many small gangs run, hundreds of ends may leave no node empty.
        """
        on: dict[NodeName, list[tuple[GangKey, float]]] = {}
        for key, end in ends:
            gang = self._table.gangs.get(key)
            slots = gang.slots if gang is not None else ()
            for node in {slot.leaves[0].node: None for slot in slots if slot.leaves}:
                if node is not None:
                    on.setdefault(node, []).append((key, end))
        emptied = sorted(on.values(), key=lambda gangs: max(end for _, end in gangs))
        return [one for gangs in emptied for one in gangs]

    def _first_fit(
        self, trial: "_Trial", ends: Ends, kept: Iterable[Seat], *, now: float
    ) -> Shadow | None:
        with self._table.what_if():
            keep(self._table, trial.vc, kept)
            return self._release(trial, ends, now=now)

    def _release(self, trial: "_Trial", ends: Ends, *, now: float) -> Shadow | None:
        releases = _Releases(self._table, trial.vc)
        seats, time = trial.seats(), now
        for key, end in ends:
            if seats:
                break
            if releases.remove(key, end):
                time = max(time, end)
                seats = trial.seats()
        seats = seats or trial.seats_at_last()
        if not seats:
            return None
        return Shadow(
            time=time,
            seats=seats,
            nodes=tuple(node_of(self._table, seat) for seat in seats),
            waits_for=releases.removed[-1][0] if releases.removed else None,
            drained=releases.drained(seats),
            ends=tuple(releases.removed),
        )


class _Releases:
    """The gangs that were removed, and the preassigned cells that they leave."""

    def __init__(self, table: AllocationTable, vc: Vc | None) -> None:
        self._table = table
        self._vc = vc
        self.removed: list[tuple[GangKey, float]] = []
        self._claims: dict[Claim, None] = {}
        self._unused = {rung: len(left) for rung, left in vc.unmapped.items()} if vc else {}

    def remove(self, key: GangKey, end: float) -> bool:
        """Remove what a gang holds, which ends then; False if it holds nothing."""
        gang = self._table.gangs.get(key)
        if gang is None or not gang.slots or gang.is_preempting:
            return False
        for slot in gang.slots:
            if slot.claim is not None and self._is_own(slot.claim):
                self._claims[slot.claim] = None
        self._table.remove_held_slots(gang)
        self.removed.append((key, end))
        return True

    def _is_own(self, claim: Claim) -> bool:
        """True if a preassigned cell of the VC may be mapped elsewhere once it is empty."""
        return self._vc is not None and claim.vc == self._vc.name and claim.virtual.pinned is None

    def drained(self, seats: Sequence[Seat]) -> tuple[Seat, ...]:
        """Return the cells that must become empty because seats count against cells elsewhere.

        Cells that seats lie in are not among them: they stay mapped, and none may have to be empty.
        """
        mapped = {claim.cell for claim in self._claims}
        found = (self._table.cell(seat.chain, seat.claim) for seat in seats if seat.claim)
        used = dict.fromkeys(cell for cell in found if cell is not None)
        new = [cell for cell in used if cell.enclosing_claim() is None and cell not in mapped]
        lacking = Counter((cell.chain.name, cell.level) for cell in new)
        lacking.subtract(self._unused)
        drained = list[Seat]()
        for claim in self._claims:
            rung = claim.virtual.chain, claim.virtual.level
            is_left = claim.cell.claim is not claim and claim.cell not in used
            if lacking[rung] > 0 and is_left:
                lacking[rung] -= 1
                drained.append(_whole(claim.cell))
        return tuple(drained)


def _whole(cell: Cell) -> Seat:
    leaves = tuple(leaf.address for leaf in cell.at_level(1))
    return Seat(chain=cell.chain.name, leaves=leaves)


class _Trial:
    """Plans one gang again and again, within one budget."""

    def __init__(
        self,
        decider: Decider,
        request: MemberRequest,
        candidates: Candidates,
        *,
        may_preempt: bool,
    ) -> None:
        self._decider = decider
        self._may_preempt = may_preempt
        self.vc = decider.vc_of(request)
        ask = decider.ask(request, candidates)
        self._ask = replace(ask, budget=SearchBudget(SHADOW_STEPS))

    def seats(self) -> tuple[Seat, ...]:
        """Return the seats that the gang gets now; none if it does not fit."""
        if self._ask.budget.left <= 0 or not self._decider.may_start(self._ask):
            return ()
        return self._plan()

    def seats_at_last(self) -> tuple[Seat, ...]:
        """Plan once more if the budget ended the search before."""
        if self._ask.budget.left > 0:
            return ()
        self._ask = replace(self._ask, budget=SearchBudget(SHADOW_STEPS))
        return self._plan()

    def _plan(self) -> tuple[Seat, ...]:
        decision = self._decider.plan_whole(self._ask)
        is_start = isinstance(decision, Place) or (
            self._may_preempt and isinstance(decision, Preempt)
        )
        return decision.seats if is_start and isinstance(decision, Place | Preempt) else ()
