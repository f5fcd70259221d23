"""Greedy set cover: clears the bin with the least damage, one after the other.

The victims of one bin may hold leaves of other bins, too. So gangs that were chosen for one bin
cost nothing elsewhere, and the damages of the bins that they touch are computed again.
"""

from collections.abc import Iterator
from heapq import heappop, heappush, nsmallest

from extender.cells.preempt.damage import Damage
from extender.cells.preempt.eviction_ranking import few_victims
from extender.cells.preempt.victim_candidates import CandidateBin, VictimCandidates
from extender.cells.state.placed_gangs import PlacedGang


class CheapestBins:
    """Chooses victims bin by bin, among some candidates."""

    def __init__(self, candidates: VictimCandidates) -> None:
        self._candidates = candidates
        useful = [bin_ for bin_ in candidates.bins.values() if bin_.is_useful]
        self._bins = sorted(useful, key=lambda bin_: (bin_.demand.chain, bin_.cell.order))
        self._index = {bin_: index for index, bin_ in enumerate(self._bins)}
        self._chosen: dict[PlacedGang, None] = {}
        self._size = next(iter(candidates.needs))
        self._heap: list[tuple[Damage, int]] = []
        self._damage: dict[CandidateBin, Damage] = {}

    def victims(self) -> Iterator[list[PlacedGang]]:
        """All gangs chosen so far, once they may suffice, then after clearing ever more bins."""
        for size in self._candidates.needs:
            self._clear_for(size)
        more = 1
        while self._candidates.may_suffice(list(self._chosen)):
            yield list(self._chosen)
            before = len(self._chosen)
            for size in self._candidates.needs:
                self._begin(size)
                for _ in range(more):
                    self._clear_next()
            if len(self._chosen) == before:
                return
            more *= 2

    def _clear_for(self, size: int) -> None:
        """Clear bins until there may be enough of them for the members of a size."""
        self._begin(size)
        missing = self._candidates.missing(size)
        while missing > 0 or not self._candidates.may_hold(size, list(self._chosen)):
            missing -= 1
            if not self._clear_next():
                return

    def cheapest_gangs(self, count: int) -> list[PlacedGang]:
        """The victims of the `count` bins with the least damage."""
        self._chosen.clear()
        self._begin(min(self._candidates.needs))
        bins = [self._bins[index] for _, index in nsmallest(count, self._heap)]
        return list(dict.fromkeys(gang for bin_ in bins for gang in self._victims(bin_)))

    def _begin(self, size: int) -> None:
        """Compute the damage of clearing each bin for one more member of a size."""
        self._size = size
        self._heap = []
        for bin_ in self._bins:
            self._put(bin_)

    def _put(self, bin_: CandidateBin) -> None:
        gangs = self._victims(bin_)
        if gangs:
            self._damage[bin_] = self._candidates.damage_of(gangs)
            heappush(self._heap, (self._damage[bin_], self._index[bin_]))
        else:
            self._damage.pop(bin_, None)

    def _next(self) -> CandidateBin | None:
        """The bin with the least damage; entries of the heap may be outdated."""
        while self._heap:
            damage, index = heappop(self._heap)
            bin_ = self._bins[index]
            if self._damage.get(bin_) == damage:
                return bin_
        return None

    def _clear_next(self) -> bool:
        """Choose the victims of the bin with the least damage; False if there is no bin."""
        bin_ = self._next()
        if bin_ is None:
            return False
        gangs = self._victims(bin_)
        self._chosen.update(dict.fromkeys(gangs))
        touched = {other: None for gang in gangs for other in self._candidates.bins_of(gang)}
        for other in touched:
            if other in self._index:
                self._put(other)
        return True

    def _victims(self, bin_: CandidateBin) -> list[PlacedGang]:
        """A few gangs without which a bin holds one more member; empty if there are none."""
        candidates, chosen = self._candidates, self._chosen
        if not candidates.frees_leaves:
            return [gang for gang in candidates.users(bin_) if gang not in chosen]
        inside = bin_.inside
        room = bin_.cell.idle + sum(inside[gang] for gang in inside if gang in chosen)
        left = {
            gang: (count, candidates.damage_of((gang,)))
            for gang, count in inside.items()
            if gang not in chosen
        }
        return few_victims(left, self._size - room % self._size)
