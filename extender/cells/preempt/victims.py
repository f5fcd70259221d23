"""The victims with the least damage: fewest gangs, then fewest leaf cells, then the youngest work.

Whole gangs end, and one gang may be on many nodes, so this is a set cover. First the cheapest bins
are cleared, one member after the other (`clearing`), and who can be spared is spared. That bounds
the damage; then smaller sets are weighed, by arithmetic (`outlook`) and, only if that says so, by
trying. With few candidates the result is exact; with many, sets of the cheapest ones are weighed.
A gang without which it works as well is never a victim.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

from extender.cells.budget import (
    EXACT_VICTIMS,
    VICTIM_SETS,
    VICTIMS_PER_STEP,
    Budget,
    OutOfBudgetError,
)
from extender.cells.preempt.cheapest_bins import CheapestBins
from extender.cells.preempt.damage import damage
from extender.cells.preempt.preemption_case import Displacement, FitTest
from extender.cells.preempt.victim_candidates import VictimCandidates
from extender.cells.state.placed_gangs import PlacedGang


def least_damage(
    outlook: VictimCandidates, works: FitTest, *, known: Displacement | None, budget: Budget
) -> Displacement | None:
    """Find the least harmful candidates without which it works, and the seats that gives.

    `known` is a way that was found already; none that is worse is returned.
    """
    clearing = CheapestBins(outlook)
    best = known or _enough(clearing, outlook, works)
    if best is None:
        return None
    try:
        best = works(best.gangs) or best if known else best  # its seats may be closer together
        best = _spare(best, outlook, works, budget)
        return _improve(best, clearing, outlook, works) or best
    except OutOfBudgetError:
        return best


def _enough(
    clearing: CheapestBins, outlook: VictimCandidates, works: FitTest
) -> Displacement | None:
    """Clear the cheapest bins until it works; if that is never, all candidates are tried."""
    for chosen in clearing.run():
        found = works(chosen)
        if found is not None:
            return found
    gangs = outlook.gangs
    return works(gangs) if gangs and outlook.may_work(gangs) else None


def _spare(
    found: Displacement, outlook: VictimCandidates, works: FitTest, budget: Budget
) -> Displacement:
    """Spare one after the other, the most harmful first."""
    may_spare = outlook.may_spare(found.gangs)
    for gang in sorted(found.gangs, key=lambda gang: outlook.damage((gang,)), reverse=True):
        if gang not in found.gangs or not may_spare(gang):
            continue
        budget.spend(1 + len(found.gangs) // VICTIMS_PER_STEP)
        without = [other for other in found.gangs if other is not gang]
        fewer = works(without) if without and outlook.may_work(without) else None
        if fewer is not None:
            found, may_spare = fewer, outlook.may_spare(fewer.gangs)
    return found


def _improve(
    best: Displacement, clearing: CheapestBins, outlook: VictimCandidates, works: FitTest
) -> Displacement | None:
    """Weigh other sets than the best known, the least harmful first."""
    limit = outlook.damage(best.gangs)
    for sets in _smaller_sets(best.gangs, clearing, outlook):
        weighed = ((outlook.damage(gangs), gangs) for gangs in sets)
        hopeful = [
            (harm, gangs) for harm, gangs in weighed if harm < limit and outlook.may_work(gangs)
        ]
        for _, gangs in sorted(hopeful, key=lambda entry: entry[0]):
            found = works(gangs)
            if found is not None:
                return found
    return None


def _smaller_sets(
    best: Sequence[PlacedGang], clearing: CheapestBins, outlook: VictimCandidates
) -> Iterator[Iterator[tuple[PlacedGang, ...]]]:
    """Sets of one gang, of two, up to as many as the best known has; a bounded number of them."""
    pool, left = list[PlacedGang](), VICTIM_SETS
    for count in range(_fewest(outlook), len(best) + 1):
        gangs = outlook.gangs if count == 1 else (pool := pool or _pool(best, clearing, outlook))
        if comb(len(gangs), count) > left:
            return
        left -= comb(len(gangs), count)
        yield combinations(gangs, count)


def _pool(
    best: Sequence[PlacedGang], clearing: CheapestBins, outlook: VictimCandidates
) -> list[PlacedGang]:
    """The candidates whose sets are weighed: all if they are few, else those cheapest to clear."""
    gangs = outlook.gangs
    if len(gangs) > EXACT_VICTIMS:
        spare = max(0, EXACT_VICTIMS - len(best))
        others = clearing.cheapest(spare) if spare else []
        gangs = [*best, *[gang for gang in others if gang not in best][:spare]]
    return gangs


def _fewest(outlook: VictimCandidates) -> int:
    """So many gangs at least must end, whoever they are."""
    fewest = 1
    for size in outlook.needs:
        missing = outlook.missing(size)
        gains = sorted((outlook.most_gained(g, size) for g in outlook.gangs), reverse=True)
        count = 0
        while missing > 0 and count < len(gains):
            missing -= gains[count]
            count += 1
        fewest = max(fewest, count)
    return fewest


def fewest_gangs(gangs: Sequence[PlacedGang], works: FitTest) -> Displacement | None:
    """Find the fewest of a few gangs with which it works, where arithmetic does not help."""
    for gang in sorted(gangs, key=lambda gang: damage([gang]))[:EXACT_VICTIMS]:
        found = works([gang])
        if found is not None:
            return found
    found = works(gangs) if gangs else None
    if found is None:
        return None
    for gang in gangs:
        found = works([other for other in found.gangs if other is not gang]) or found
    return found
