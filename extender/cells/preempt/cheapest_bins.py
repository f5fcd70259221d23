"""Which bins are cheapest to clear for one more member, when candidates for victims end."""

from collections.abc import Iterator
from heapq import heappop, heappush, nsmallest

from extender.cells.preempt.damage import Damage
from extender.cells.preempt.victim_candidates import CandidateBin, VictimCandidates
from extender.cells.state.placed_gangs import PlacedGang


class CheapestBins:
    """Clears one bin after the other. Gangs that are chosen already cost nothing elsewhere."""

    def __init__(self, outlook: VictimCandidates) -> None:
        self._outlook = outlook
        useful = [bin_ for bin_ in outlook.bins.values() if bin_.is_useful]
        self._bins = sorted(useful, key=lambda bin_: (bin_.demand.chain, bin_.cell.order))
        self._at = {bin_: index for index, bin_ in enumerate(self._bins)}
        self.chosen: dict[PlacedGang, None] = {}
        self._size = next(iter(outlook.needs))
        self._heap: list[tuple[Damage, int]] = []
        self._price: dict[CandidateBin, Damage] = {}

    def run(self) -> Iterator[list[PlacedGang]]:
        """All that was chosen, once it may be enough, then with twice as many bins each time."""
        for size in self._outlook.needs:
            self._clear_for(size)
        more = 1
        while self._outlook.may_work(list(self.chosen)):
            yield list(self.chosen)
            before = len(self.chosen)
            for size in self._outlook.needs:
                self._begin(size)
                for _ in range(more):
                    self._clear_next()
            if len(self.chosen) == before:
                return
            more *= 2

    def _clear_for(self, size: int) -> None:
        """Clear bins until there may be enough of a size."""
        self._begin(size)
        missing = self._outlook.missing(size)
        while missing > 0 or not self._outlook.may_hold(size, list(self.chosen)):
            missing -= 1
            if not self._clear_next():
                return

    def cheapest(self, count: int) -> list[PlacedGang]:
        """Gangs of the bins that are cheapest to clear for a member, about so many."""
        self.chosen.clear()
        self._begin(min(self._outlook.needs))
        bins = [self._bins[index] for _, index in nsmallest(count, self._heap)]
        return list(dict.fromkeys(gang for bin_ in bins for gang in self._cheapest(bin_)))

    def _begin(self, size: int) -> None:
        self._size = size
        self._heap = []
        for bin_ in self._bins:
            self._put(bin_)

    def _put(self, bin_: CandidateBin) -> None:
        gangs = self._cheapest(bin_)
        if gangs:
            self._price[bin_] = self._outlook.damage(gangs)
            heappush(self._heap, (self._price[bin_], self._at[bin_]))
        else:
            self._price.pop(bin_, None)

    def _next(self) -> CandidateBin | None:
        """The bin that is cheapest to clear for one more member."""
        while self._heap:
            price, index = heappop(self._heap)
            bin_ = self._bins[index]
            if self._price.get(bin_) == price:
                return bin_
        return None

    def _clear_next(self) -> bool:
        """Choose the gangs of the cheapest bin; False if there is none."""
        bin_ = self._next()
        if bin_ is None:
            return False
        gangs = self._cheapest(bin_)
        self.chosen.update(dict.fromkeys(gangs))
        touched = {other: None for gang in gangs for other in self._outlook.bins_of(gang)}
        for other in touched:
            if other in self._at:
                self._put(other)
        return True

    def _cheapest(self, bin_: CandidateBin) -> list[PlacedGang]:
        """A few gangs of a bin without which it holds one more member; empty if there are none."""
        if not self._outlook.leaves_go:
            return [gang for gang in self._outlook.users(bin_) if gang not in self.chosen]
        inside = bin_.inside
        room = bin_.cell.idle + sum(inside[gang] for gang in inside if gang in self.chosen)
        target = self._size - room % self._size
        left = [gang for gang in inside if gang not in self.chosen]
        alone = [gang for gang in left if inside[gang] >= target]
        if alone:
            return [min(alone, key=self._harm)]
        taken: list[PlacedGang] = []
        for gang in sorted(left, key=lambda gang: (-inside[gang], self._harm(gang))):
            taken.append(gang)
            target -= inside[gang]
            if target <= 0:
                return taken
        return []

    def _harm(self, gang: PlacedGang) -> Damage:
        return self._outlook.damage((gang,))
