"""Where a gang may preempt, which gangs it may displace, and trial fits without them.

A set of victims counts only if it was tried: inside `AllocationTable.what_if` their slots are
removed and the preempting gang is fitted. `victims` chooses between the sets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from extender.cells.budget import VICTIM_STEPS, SearchBudget
from extender.cells.fit.demand import Demand
from extender.cells.model import MemberRequest, Seat
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.registry import Registry
from extender.cells.state.vcs import Vc


@dataclass(frozen=True, slots=True)
class Displacement:
    """Gangs that have to make room, and the seats that the preempting gang gets."""

    gangs: tuple[PlacedGang, ...]
    seats: tuple[Seat, ...]
    """Empty if cells have to be mapped anew once the gangs have ended: nothing to reserve yet."""


FitTest = Callable[[Sequence[PlacedGang]], Displacement | None]
"""Tries to fit the preempting gang while some gangs make room; None if it does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionCase:
    """A guaranteed gang that preempts in one chain, or in all of its chains together."""

    demands: tuple[Demand, ...]
    """The demand on each chain."""
    fit: Callable[[], list[Seat] | None]
    """Fits the gang into the present state."""
    request: MemberRequest
    """The request of the asking member."""
    below: int = 0
    """Gangs of the VC below this priority may be ended; 0: there are none."""
    takes_any: bool = False
    """Whether the first victims that are found will do."""

    @property
    def budget(self) -> SearchBudget:
        return self.demands[0].budget

    @property
    def priority(self) -> int:
        return self.request.priority

    @property
    def vc(self) -> Vc:
        vc = self.demands[0].vc
        assert vc is not None, "only guaranteed gangs preempt"
        return vc

    def competes_with(self, gang: PlacedGang) -> bool:
        """True if a gang uses preassigned cells that the preempting gang could use."""
        return any(
            slot.claim is not None
            and slot.claim.virtual.chain == demand.chain
            and slot.claim.virtual.pinned == demand.pinned
            for slot in gang.slots
            for demand in self.demands
        )


def overtakable(registry: Registry, case: PreemptionCase) -> list[PlacedGang]:
    """Gangs of the VC that are preempting at a lower priority: cancelling this ends no gang."""
    rivals = registry.reserving_below(case.vc.name, case.priority)
    return [gang for gang in rivals if case.competes_with(gang)]


def downgradable(registry: Registry, case: PreemptionCase) -> Iterator[PlacedGang]:
    """Gangs of the VC that may be downgraded rather than ended."""
    lazy = registry.lazy_below(case.vc.name, case.priority)
    return (gang for gang in lazy if not gang.is_preempting and case.competes_with(gang))


def endable(registry: Registry, case: PreemptionCase) -> Iterator[PlacedGang]:
    """Gangs of the VC that may be ended, the lowest priorities first."""
    below = registry.below(case.vc.name, case.priority)
    ended = (gang for gang in below if not gang.is_preempting and not gang.is_spared)
    return (gang for gang in ended if case.competes_with(gang))


# -- trial fits


def fit_without(table: AllocationTable, case: PreemptionCase) -> FitTest:
    """Try to fit while some gangs are gone, first with their cells mapped as they are.

    If the gang fits only when these cells are mapped elsewhere, it can reserve nothing yet: then
    the displacement has no seats.
    """

    def try_fit(gangs: Sequence[PlacedGang]) -> Displacement | None:
        found = _fit_after(
            table, case, gangs, lambda g: table.remove_held_slots(g, keeps_claims=True)
        )
        if found is not None:
            return Displacement(_holders(table, found) or found.gangs, found.seats)
        found = _fit_after(table, case, gangs, table.remove_held_slots)
        return None if found is None else Displacement(found.gangs, ())

    return try_fit


def _holders(table: AllocationTable, found: Displacement) -> tuple[PlacedGang, ...]:
    """The gangs that hold leaves of the seats: the others need not end for these seats."""
    holders = {leaf.holder for seat in found.seats for leaf in table.leaves_of(seat)}
    return tuple(gang for gang in found.gangs if gang in holders)


def fit_overtaking(table: AllocationTable, case: PreemptionCase) -> FitTest:
    """Try to fit while the preemptions of some gangs are cancelled; they keep what they hold."""
    return lambda gangs: _fit_after(table, case, gangs, table.remove_reserved_slots)


def fit_downgraded(table: AllocationTable, case: PreemptionCase) -> FitTest:
    """Try to fit while some gangs are opportunistic."""
    return lambda gangs: _fit_after(table, case, gangs, table.downgrade)


def _fit_after(
    table: AllocationTable,
    case: PreemptionCase,
    gangs: Sequence[PlacedGang],
    change: Callable[[PlacedGang], None],
) -> Displacement | None:
    case.budget.spend(VICTIM_STEPS * sum(len(gang.slots) for gang in gangs))
    with table.what_if():
        for gang in gangs:
            change(gang)
        seats = case.fit()
    return None if seats is None else Displacement(tuple(gangs), tuple(seats))
