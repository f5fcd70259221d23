"""Who may have to make room, and what it would be like without them.

Nothing is believed about victims that was not tried: inside `Table.what_if` they are taken away and
the gang is fitted. Who of them goes is decided in `victims`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from extender.cells.budget import VICTIM_STEPS, Budget
from extender.cells.fit.demand import Demand
from extender.cells.model import MemberRequest, Seat
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.registry import Registry
from extender.cells.state.vcs import Vc


@dataclass(frozen=True, slots=True)
class Displacement:
    """Gangs that have to make room, and the seats that gives; none if nothing can be reserved."""

    gangs: tuple[PlacedGang, ...]
    seats: tuple[Seat, ...]


FitTest = Callable[[Sequence[PlacedGang]], Displacement | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionCase:
    """Where a guaranteed gang wants in: one chain, or all of its chains together."""

    demands: tuple[Demand, ...]
    """What is asked of each chain."""
    fit: Callable[[], list[Seat] | None]
    """Fits the gang as things are."""
    request: MemberRequest
    """Of the member that asks."""
    below: int = 0
    """Gangs of the VC below this priority may be ended; 0: there are none."""

    @property
    def budget(self) -> Budget:
        return self.demands[0].budget

    @property
    def priority(self) -> int:
        return self.request.priority

    @property
    def vc(self) -> Vc:
        vc = self.demands[0].vc
        assert vc is not None, "only guaranteed gangs make others go"
        return vc

    def touches(self, gang: PlacedGang) -> bool:
        """True if the gang uses preassigned cells that this one could use."""
        return any(
            slot.claim is not None
            and slot.claim.virtual.chain == demand.chain
            and slot.claim.virtual.pinned == demand.pinned
            for slot in gang.slots
            for demand in self.demands
        )


def overtaken(registry: Registry, case: PreemptionCase) -> list[PlacedGang]:
    """Gangs of the VC that preempt at a lower priority: cancelling that ends nobody."""
    rivals = registry.reserving_below(case.vc.name, case.priority)
    return [gang for gang in rivals if case.touches(gang)]


def downgradable(registry: Registry, case: PreemptionCase) -> Iterator[PlacedGang]:
    """Gangs of the VC that are to be downgraded rather than ended."""
    lazy = registry.lazy_below(case.vc.name, case.priority)
    return (gang for gang in lazy if not gang.is_preempting and case.touches(gang))


def endable(registry: Registry, case: PreemptionCase) -> Iterator[PlacedGang]:
    """Gangs of its own VC that a guaranteed gang may end, the lowest priorities first."""
    below = registry.below(case.vc.name, case.priority)
    return (gang for gang in below if not gang.is_preempting and case.touches(gang))


# -- trying


def fit_without(table: AllocationTable, case: PreemptionCase) -> FitTest:
    """Try to fit while some gangs are gone; their mapped cells stay mapped, for the newcomer.

    If only another mapping of their cells would do, nothing can be reserved yet: no seats.
    """

    def works(gangs: Sequence[PlacedGang]) -> Displacement | None:
        found = _fit_after(table, case, gangs, lambda g: table.vacate(g, keeps_claims=True))
        if found is not None:
            return Displacement(_holders(table, found) or found.gangs, found.seats)
        found = _fit_after(table, case, gangs, table.vacate)
        return None if found is None else Displacement(found.gangs, ())

    return works


def _holders(table: AllocationTable, found: Displacement) -> tuple[PlacedGang, ...]:
    """The gangs that are where the seats are: the others need not go for these seats."""
    leaves = (
        table.trees[seat.chain].by_address[address]
        for seat in found.seats
        for address in seat.leaves
    )
    there = {leaf.holder for leaf in leaves}
    return tuple(gang for gang in found.gangs if gang in there)


def fit_overtaking(table: AllocationTable, case: PreemptionCase) -> FitTest:
    """Try to fit while some gangs do not preempt; what they hold already they keep."""
    return lambda gangs: _fit_after(table, case, gangs, table.withdraw)


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
