"""Victims that are ending already: their leaf cells come free anyway, so they cost no damage.

Who has to end beside them is asked as if they were gone: then only others are weighed, and nobody
ends whom they make unnecessary. They hold their leaves until they have ended, like every victim.
"""

from collections.abc import Callable, Sequence

from extender.cells.budget import ENDING_LOOKS, ENDING_SHARE, VICTIM_STEPS, OutOfBudgetError
from extender.cells.preempt.damage import damage
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
"""Finds the least harmful victims as things are."""


def candidates(registry: Registry, case: PreemptionCase) -> list[PlacedGang]:
    """Gangs that are ending where the case could be; so many that the search can afford them."""
    chains = {demand.chain for demand in case.demands}
    left = case.budget.left // (ENDING_SHARE * VICTIM_STEPS)
    found: list[PlacedGang] = []
    for gang in registry.ending_for(case.request, most=ENDING_LOOKS):
        is_there = any(slot.leaves and slot.leaves[0].chain.name in chains for slot in gang.slots)
        if is_there and len(gang.slots) <= left:
            left -= len(gang.slots)
            found.append(gang)
    return found


def least_beside(
    table: AllocationTable, case: PreemptionCase, leaving: Sequence[PlacedGang], search: Search
) -> Displacement | None:
    """Find victims among gangs that are leaving, and the least harmful others if these need any.

    None if there are none, or half of the steps did not suffice to tell.
    """
    works = fit_without(table, case)
    try:
        with case.budget.half():
            found = works(leaving)
            if found is None:
                others = _least_others(table, leaving, search)
                found = works([*leaving, *others]) if others else None
            return _spare(found, works) if found is not None else None
    except OutOfBudgetError:
        return None


def _least_others(
    table: AllocationTable, leaving: Sequence[PlacedGang], search: Search
) -> Sequence[PlacedGang]:
    """Who has to end when some are gone, where the cells they count on stay mapped or not."""
    found = [_others(table, leaving, search, keeps_claims=True)]
    if any(gang.is_guaranteed for gang in leaving):
        found.append(_others(table, leaving, search, keeps_claims=False))
    return min((gangs for gangs in found if gangs), key=damage, default=())


def _others(
    table: AllocationTable, leaving: Sequence[PlacedGang], search: Search, *, keeps_claims: bool
) -> Sequence[PlacedGang]:
    with table.what_if():
        for gang in leaving:
            table.vacate(gang, keeps_claims=keeps_claims)
        found = search()
    return found.gangs if found is not None else ()


def _spare(found: Displacement, works: FitTest) -> Displacement:
    """Do not wait for whom it works without, those that were told to end last first."""
    try:
        for gang in [gang for gang in reversed(found.gangs) if gang.is_ending]:
            rest = [other for other in found.gangs if other is not gang]
            if rest and gang in found.gangs:
                found = works(rest) or found
    except OutOfBudgetError:
        pass
    return found
