"""Finds the set of victims with the least damage.

Whole gangs end, and one gang may be on many nodes, so this is a set cover. First a greedy cover
clears the cheapest bins (`cheapest_bins`), and gangs of it that are not needed are spared. This
bounds the damage. Then sets with less damage are checked, first by bounds (`victim_candidates`) and
only then by a trial fit. With few candidates the result is exact; with many, only sets of the
cheapest ones are checked. A gang that is not needed is never a victim.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Final

from extender.cells.budget import (
    EXACT_VICTIMS,
    VICTIM_SETS,
    VICTIMS_PER_STEP,
    OutOfBudgetError,
    SearchBudget,
)
from extender.cells.preempt.cheapest_bins import CheapestBins
from extender.cells.preempt.damage import breaks_budget, damage_of
from extender.cells.preempt.preemption_case import Displacement, FitTest
from extender.cells.preempt.victim_candidates import VictimCandidates
from extender.cells.state.placed_gangs import PlacedGang

_MORE_GANGS: Final = 2
"""By how many gangs a set may be larger that breaks no budget, or fewer."""


def least_damage(
    candidates: VictimCandidates,
    try_fit: FitTest,
    *,
    known: Displacement | None,
    budget: SearchBudget,
) -> Displacement | None:
    """Find the victims with the least damage, and the seats that ending them gives.

    `known` is a solution that was found already; the result is never worse.
    """
    cover = CheapestBins(candidates)
    best = known or _first_cover(cover, candidates, try_fit)
    if best is None:
        return None
    try:
        best = try_fit(best.gangs) or best if known else best  # its seats may be closer together
        best = _spare(best, candidates, try_fit, budget)
        return _improve(best, cover, candidates, try_fit) or best
    except OutOfBudgetError:
        return best


def first_solution(candidates: VictimCandidates, try_fit: FitTest) -> Displacement | None:
    """Find victims, whatever damage their end does."""
    return _first_cover(CheapestBins(candidates), candidates, try_fit)


def _first_cover(
    cover: CheapestBins, candidates: VictimCandidates, try_fit: FitTest
) -> Displacement | None:
    """Clear the cheapest bins until the gang fits; if it never does, try all candidates."""
    for chosen in cover.victims():
        found = try_fit(chosen)
        if found is not None:
            return found
    gangs = candidates.gangs
    return try_fit(gangs) if gangs and candidates.may_suffice(gangs) else None


def _spare(
    found: Displacement, candidates: VictimCandidates, try_fit: FitTest, budget: SearchBudget
) -> Displacement:
    """Drop victims that are not needed, one after the other, the most damage first."""
    may_spare = candidates.may_spare(found.gangs)
    for gang in sorted(found.gangs, key=lambda gang: candidates.damage_of((gang,)), reverse=True):
        if gang not in found.gangs or not may_spare(gang):
            continue
        budget.spend(1 + len(found.gangs) // VICTIMS_PER_STEP)
        without = [other for other in found.gangs if other is not gang]
        fewer = try_fit(without) if without and candidates.may_suffice(without) else None
        if fewer is not None:
            found, may_spare = fewer, candidates.may_spare(fewer.gangs)
    return found


def _improve(
    best: Displacement, cover: CheapestBins, candidates: VictimCandidates, try_fit: FitTest
) -> Displacement | None:
    """Find a set with less damage than the best one known, trying the least damage first."""
    limit = candidates.damage_of(best.gangs)
    for sets in _smaller_sets(best.gangs, cover, candidates):
        weighed = ((candidates.damage_of(gangs), gangs) for gangs in sets)
        better = [
            (damage, gangs)
            for damage, gangs in weighed
            if damage < limit and candidates.may_suffice(gangs)
        ]
        for _, gangs in sorted(better, key=lambda entry: entry[0]):
            found = try_fit(gangs)
            if found is not None:
                return found
    return None


def _smaller_sets(
    best: Sequence[PlacedGang], cover: CheapestBins, candidates: VictimCandidates
) -> Iterator[Iterator[tuple[PlacedGang, ...]]]:
    """Sets of candidates by their size, up to that of the best one known; bounded in number."""
    pool, left = list[PlacedGang](), VICTIM_SETS
    # More gangs are better than one that breaks a budget.
    most = len(best) + (_MORE_GANGS if breaks_budget(candidates.damage_of(best)) else 0)
    for count in range(_fewest(candidates), most + 1):
        gangs = candidates.gangs if count == 1 else (pool := pool or _pool(best, cover, candidates))
        if comb(len(gangs), count) > left:
            return
        left -= comb(len(gangs), count)
        yield combinations(gangs, count)


def _pool(
    best: Sequence[PlacedGang], cover: CheapestBins, candidates: VictimCandidates
) -> list[PlacedGang]:
    """The candidates whose sets are checked: all if they are few, else the cheapest to end."""
    gangs = candidates.gangs
    if len(gangs) > EXACT_VICTIMS:
        spare = max(0, EXACT_VICTIMS - len(best))
        others = cover.cheapest_gangs(spare) if spare else []
        gangs = [*best, *[gang for gang in others if gang not in best][:spare]]
    return gangs


def _fewest(candidates: VictimCandidates) -> int:
    """A lower bound on the number of gangs that have to end."""
    fewest = 1
    for size in candidates.needs:
        missing = candidates.missing(size)
        gains = sorted((candidates.most_gained(g, size) for g in candidates.gangs), reverse=True)
        count = 0
        while missing > 0 and count < len(gains):
            missing -= gains[count]
            count += 1
        fewest = max(fewest, count)
    return fewest


def fewest_gangs(gangs: Sequence[PlacedGang], try_fit: FitTest) -> Displacement | None:
    """Find the fewest of a few gangs that have to make room, without bounds."""
    for gang in sorted(gangs, key=lambda gang: damage_of([gang]))[:EXACT_VICTIMS]:
        found = try_fit([gang])
        if found is not None:
            return found
    found = try_fit(gangs) if gangs else None
    if found is None:
        return None
    for gang in gangs:
        found = try_fit([other for other in found.gangs if other is not gang]) or found
    return found
