"""Prefers victims that are ending already: their leaves become free anyway, at no damage.

The search for further victims runs as if the ending gangs were gone. So it weighs only the others,
and no gang ends without need. Ending gangs hold their leaves until they have ended, like all
victims.
"""

from collections.abc import Callable, Sequence

from extender.cells.budget import ENDING_LOOKS, ENDING_SHARE, VICTIM_STEPS, OutOfBudgetError
from extender.cells.preempt.damage import damage_of
from extender.cells.preempt.preemption_case import (
    Displacement,
    FitTest,
    PreemptionCase,
    fit_without,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.registry import Registry

Search = Callable[[], Displacement | None]
"""Finds the victims with the least damage in the present state."""


def candidates(registry: Registry, case: PreemptionCase) -> list[PlacedGang]:
    """Ending gangs in chains of the case, as many as the budget of the search allows."""
    chains = {demand.chain for demand in case.demands}
    left = case.budget.left // (ENDING_SHARE * VICTIM_STEPS)
    found: list[PlacedGang] = []
    for gang in registry.ending_for(case.request, most=ENDING_LOOKS):
        is_in_case = any(slot.leaves and slot.leaves[0].chain.name in chains for slot in gang.slots)
        if is_in_case and len(gang.slots) <= left:
            left -= len(gang.slots)
            found.append(gang)
    return found


def least_beside(
    table: AllocationTable, case: PreemptionCase, ending: Sequence[PlacedGang], search: Search
) -> Displacement | None:
    """Find victims among the ending gangs, and further ones with the least damage if needed.

    None if there are none, or if half of the remaining steps did not suffice.
    """
    try_fit = fit_without(table, case)
    try:
        with case.budget.half():
            found = try_fit(ending)
            if found is None:
                others = _least_others(table, ending, search)
                found = try_fit([*ending, *others]) if others else None
            return _spare(found, try_fit) if found is not None else None
    except OutOfBudgetError:
        return None


def _least_others(
    table: AllocationTable, ending: Sequence[PlacedGang], search: Search
) -> Sequence[PlacedGang]:
    """Further victims once the ending gangs are gone, whether their cells stay mapped or not."""
    found = [_others(table, ending, search, keeps_claims=True)]
    if any(gang.is_guaranteed for gang in ending):
        found.append(_others(table, ending, search, keeps_claims=False))
    return min((gangs for gangs in found if gangs), key=damage_of, default=())


def _others(
    table: AllocationTable, ending: Sequence[PlacedGang], search: Search, *, keeps_claims: bool
) -> Sequence[PlacedGang]:
    with table.what_if():
        for gang in ending:
            table.remove_held_slots(gang, keeps_claims=keeps_claims)
        found = search()
    return found.gangs if found is not None else ()


def _spare(found: Displacement, try_fit: FitTest) -> Displacement:
    """Drop ending gangs that need not be waited for, the last to end first."""
    try:
        for gang in [gang for gang in reversed(found.gangs) if gang.is_ending]:
            rest = [other for other in found.gangs if other is not gang]
            if rest and gang in found.gangs:
                found = try_fit(rest) or found
    except OutOfBudgetError:
        pass
    return found
