"""Which promises are kept where a chain has too few cells for all of them.

The rule is max-min fairness in leaf cells: all VCs keep equally many, as far as whole cells allow,
and none more than it was promised. So a VC whose promise is far too large cannot take the cells of
the others, whatever the levels of their promises are.

All VCs are filled at the same time, as from one tap. At *fill level* w each VC has taken cells, the
highest level first, for as long as it had at most w leaf cells. A cell that does not fit at some
fill level fits at no higher one, so its level is closed for all VCs, which then go on with their
lower levels.

    8 racks of 2 nodes of 8; a is promised 30 racks, b 4 nodes
    a rack, b node, b node, a rack, b node, b node (b has all), a rack … → a: 6 racks, b: 4 nodes

A cell counts as many leaf cells as the largest one of its level. Which of several VCs with equally
many leaf cells goes first: the one whose next cell is smallest, so that a large cell takes nothing
from a VC that asks for little; then the one that was promised most, then by name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from policy.cluster.safety import Stepwise
from policy.submission import VcName

Cells = Counter[int]
"""Numbers of cells by level."""
Fits = Callable[[Mapping[int, int]], Stepwise[bool]]
"""Tells whether so many cells of each level can be given at the same time."""


def cut_fairly_stepwise(
    promised: Mapping[VcName, Mapping[int, int]], *, sizes: Mapping[int, int], fits: Fits
) -> Stepwise[dict[VcName, Cells]]:
    """Return how many cells of each level every VC keeps; `sizes` are leaf cells by level."""
    cut = _Cut(
        promised=promised,
        sizes=sizes,
        fits=fits,
        open_levels=sorted({level for of_vc in promised.values() for level in of_vc}, reverse=True),
        kept={name: Counter() for name in sorted(promised)},
    )
    while cut.open_levels:
        yield from cut.fill()
    return cut.kept


@dataclass(slots=True)
class _Cut:
    promised: Mapping[VcName, Mapping[int, int]]
    sizes: Mapping[int, int]
    fits: Fits
    open_levels: list[int]
    kept: dict[VcName, Cells]

    def fill(self) -> Stepwise[None]:
        """Fill up to the highest fill level that fits, then cell by cell, and close a level."""
        low, high = -1, max(map(self._leaf_count, self.promised.values()))
        if (yield from self._fits(full := self._filled(high))):
            self.kept, self.open_levels = full, []
            return
        while high - low > 1:
            middle = (low + high) // 2
            does_fit = yield from self._fits(self._filled(middle))
            low, high = (middle, high) if does_fit else (low, middle)
        self.kept = self._filled(low)
        self._close((yield from self._first_that_does_not_fit(high)))

    def _first_that_does_not_fit(self, at: int) -> Stepwise[int]:
        """Give one cell to each VC that is next at a fill level; return the level of the last."""
        levels = {name: next(self._left(name, self.kept[name]), 0) for name in self.kept}
        due = [name for name in levels if levels[name] and self._leaf_count(self.kept[name]) <= at]
        for name in sorted(due, key=lambda one: self._turn(one, levels[one])):
            level = levels[name]
            self.kept[name][level] += 1
            if not (yield from self._fits(self.kept)):
                self.kept[name][level] -= 1
                return level
        return self.open_levels[0]  # the search for a proof was cut short

    def _turn(self, name: VcName, level: int) -> tuple[int, int, VcName]:
        """Order VCs that are next at the same fill level."""
        return self.sizes[level], -self._leaf_count(self.promised[name]), name

    def _close(self, level: int) -> None:
        self.open_levels = [other for other in self.open_levels if other != level]

    def _left(self, name: VcName, kept: Cells) -> Iterator[int]:
        """Yield the open levels of which a VC was promised more cells, the highest first."""
        of_vc = self.promised[name]
        return (level for level in self.open_levels if kept[level] < of_vc.get(level, 0))

    def _filled(self, at: int) -> dict[VcName, Cells]:
        return {name: self._filled_vc(name, at) for name in self.kept}

    def _filled_vc(self, name: VcName, at: int) -> Cells:
        cells = Counter(self.kept[name])
        total = self._leaf_count(cells)
        for level in list(self._left(name, cells)):
            if total > at:
                break
            left = self.promised[name][level] - cells[level]
            taken = min(left, (at - total) // self.sizes[level] + 1)
            cells[level] += taken
            total += taken * self.sizes[level]
        return cells

    def _leaf_count(self, cells: Mapping[int, int]) -> int:
        return sum(count * self.sizes[level] for level, count in cells.items())

    def _fits(self, kept: Mapping[VcName, Cells]) -> Stepwise[bool]:
        yield
        total: Cells = Counter()
        for cells in kept.values():
            total.update(cells)
        return (yield from self.fits(total))
