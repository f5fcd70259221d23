"""The proof that every VC can be given all that it was promised, at the same time.

Cells are laminar: two of them are disjoint, or one holds the other. A pinned cell is one particular
cell, so the claimed ones are carved out first; what is left is a forest of intact cells. Then the
promises are met from the highest level down. Why that is exact:

1. *Highest first.* An assignment gives to each promise an intact cell of its level, all disjoint.
   Read any assignment from its highest level down: the cells of a level lie in none that were given
   above, so they are among those that the choices above left over. Hence nothing is lost by
   choosing level by level, if all choices of a level are tried.
2. *Which cells.* Say cell A covers cell B if the tree of B can be laid into that of A, level by
   level. If an assignment gives A away but not B, exchange them: give B, and meet what B met from
   its image in A. So cells that cover no remaining one may always go first. In a uniform chain
   (HiveD's) all cells of a level cover each other and any choice is right. Where nodes differ, the
   smallest goes first, and only if neither of two kinds covers the other both orders are tried.

    racks [8 8] and [4 4 4], promised: 1 rack and 2 nodes and 8 leaf cells
    give [8 8]   → nodes 4 4 4 are left: 2 nodes, then 4 leaf cells: too few
    give [4 4 4] → nodes 8 8 are left: 2 nodes, then none: too few → it does not fit

Levels that nobody was promised do not matter and are left out of the comparison. Trying is bounded;
beyond that the answer is still safe: what is not proven to fit is refused, and says so.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.topology import Chain, PhysicalCell, PinnedCellId

MAX_STEPS: Final = 20_000
"""Choices tried per chain; half a second's worth."""
MAX_KINDS: Final = 200
"""Different cells of one level among which choices are made; beyond, only the smallest go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """The first level, from the top, at which promises cannot be kept."""

    level: int
    promised: int
    available: int
    is_proven: bool
    """False if an assignment may exist that was not tried."""


def find_shortage(
    chain: Chain, *, promised: Mapping[int, int], pinned: Collection[PinnedCellId]
) -> Shortage | None:
    """Return why so many cells per level, beside the claimed pinned cells, cannot all be given.

    None is the proof that they can. `available` is the most that any choice leaves at that level.
    """
    levels = sorted((level for level, count in promised.items() if count > 0), reverse=True)
    if not levels:
        return None
    forest = _Forest(levels=frozenset(levels), lowest=levels[-1], pinned=frozenset(pinned))
    for cell in chain.cells:
        forest.add(cell)
    search = _Search(levels=levels, promised=promised, pool=forest.pool)
    return None if search.fits() else search.shortage()


@dataclass(eq=False, slots=True)
class _Kind:
    """Cells that are alike, as far as the promised levels go."""

    parts: tuple[tuple["_Kind", int], ...]
    """Kinds of cells of the next promised level within, with their numbers."""
    order: int
    weight: int
    """Promised-level cells within, itself included: a cell never covers a heavier one."""


_Bag = tuple[tuple[_Kind, int], ...]
_Pool = dict[int, Counter[_Kind]]


@dataclass(slots=True)
class _Forest:
    """What the pinned cells leave: intact cells of promised levels that lie in no other such."""

    levels: frozenset[int]
    lowest: int
    pinned: frozenset[PinnedCellId]
    pool: _Pool = field(default_factory=dict)
    _kinds: dict[tuple[int, _Bag], _Kind] = field(default_factory=dict)

    def add(self, cell: PhysicalCell) -> None:
        bag, level = self._visit(cell), self._level_within(cell.level)
        if bag is not None:
            self._keep(bag, level)

    def _visit(self, cell: PhysicalCell) -> _Bag | None:
        """Return what the cell offers; None if pinned cells break it up (its parts are kept)."""
        if cell.pinned is not None and cell.pinned in self.pinned:
            return None
        if not self.pinned and cell.level < self.lowest:
            return ()
        bags = [self._visit(child) for child in cell.children]
        whole = [bag for bag in bags if bag is not None]
        if len(whole) < len(bags):
            for bag in whole:
                self._keep(bag, self._level_within(cell.level - 1))
            return None
        merged = _merge(whole)
        return ((self._kind(cell.level, merged), 1),) if cell.level in self.levels else merged

    def _level_within(self, level: int) -> int:
        """The highest promised level that is not above this one; 0 if there is none."""
        return max((promised for promised in self.levels if promised <= level), default=0)

    def _keep(self, bag: _Bag, level: int) -> None:
        kinds = self.pool.setdefault(level, Counter())
        for kind, count in bag:
            kinds[kind] += count

    def _kind(self, level: int, parts: _Bag) -> _Kind:
        known = self._kinds.get((level, parts))
        if known is None:
            weight = 1 + sum(kind.weight * count for kind, count in parts)
            known = _Kind(parts=parts, order=len(self._kinds), weight=weight)
            self._kinds[level, parts] = known
        return known


def _merge(bags: Sequence[_Bag]) -> _Bag:
    if len(bags) <= 1:
        return bags[0] if bags else ()
    counts: Counter[_Kind] = Counter()
    for bag in bags:
        for kind, count in bag:
            counts[kind] += count
    return tuple(sorted(counts.items(), key=lambda item: _rank(item[0])))


def _rank(kind: _Kind) -> tuple[int, int]:
    return kind.weight, kind.order


@dataclass(frozen=True, slots=True)
class _Left:
    """How many of a kind a choice leaves, and of those before: a list that shares its tail."""

    kind: _Kind
    count: int
    before: "_Left | None"

    def __iter__(self) -> Iterator["_Left"]:
        left: _Left | None = self
        while left is not None:
            yield left
            left = left.before


@dataclass(slots=True)
class _Search:
    """Meets the promises level by level; goes back where another choice may leave more."""

    levels: Sequence[int]
    promised: Mapping[int, int]
    pool: _Pool
    _steps: int = MAX_STEPS
    _is_complete: bool = True
    _worst: tuple[int, int] = (0, 0)
    """The lowest level that any choice reached, as its place in `levels`, and what was there."""
    _covers: dict[tuple[_Kind, _Kind], bool] = field(default_factory=dict)

    def fits(self) -> bool:
        """Try all choices that can make a difference."""
        return self._meet(0, self.pool.get(self.levels[0], Counter()))

    def shortage(self) -> Shortage:
        place, available = self._worst
        level = self.levels[place]
        return Shortage(
            level=level,
            promised=self.promised[level],
            available=available,
            is_proven=self._is_complete,
        )

    def _meet(self, place: int, there: Counter[_Kind]) -> bool:
        needed, available = self.promised[self.levels[place]], there.total()
        if available < needed:
            self._worst = max(self._worst, (place, available))
            return False
        if place == len(self.levels) - 1:
            return True
        return any(
            self._meet(place + 1, self._opened(place, left))
            for left in self._choices(there, needed)
        )

    def _opened(self, place: int, left: Iterable[tuple[_Kind, int]]) -> Counter[_Kind]:
        """What the cells that were not given offer one promised level down."""
        there = Counter(self.pool.get(self.levels[place + 1], Counter()))
        for kind, count in left:
            for part, number in kind.parts:
                there[part] += number * count
        return there

    def _choices(self, there: Counter[_Kind], needed: int) -> Iterator[list[tuple[_Kind, int]]]:
        """Yield what each choice of so many cells leaves, the lightest choice first.

        A kind is not taken while one that it covers is left: see the exchange above.
        """
        kinds = sorted(((kind, n) for kind, n in there.items() if n > 0), key=lambda x: _rank(x[0]))
        stack: list[tuple[int, int, _Left | None]] = [(0, needed, None)]
        while stack:
            place, missing, left = stack.pop()
            if self._steps <= 0:
                self._is_complete = False
                return
            self._steps -= 1
            if missing == 0:
                yield [*((step.kind, step.count) for step in left or ()), *kinds[place:]]
            elif place < len(kinds):
                stack += self._next_steps(kinds, place, missing=missing, left=left)

    def _next_steps(
        self, kinds: list[tuple[_Kind, int]], place: int, *, missing: int, left: _Left | None
    ) -> Iterator[tuple[int, int, _Left | None]]:
        """Yield how many of a kind to take, the most last (it is tried first)."""
        kind, count = kinds[place]
        is_free = not any(
            step.count and self._is_covered(step.kind, by=kind) for step in left or ()
        )
        most = min(count, missing) if is_free else 0
        others = self._others(kinds, place)
        for taken in range(max(0, missing - others), most):
            yield place + 1, missing - taken, _Left(kind, count - taken, left)
        if is_free or others:
            yield place + 1, missing - most, _Left(kind, count - most, left)

    def _others(self, kinds: list[tuple[_Kind, int]], place: int) -> int:
        """How many later cells could be taken although some of this kind are left."""
        if len(kinds) > MAX_KINDS:
            self._is_complete = False
            return 0
        kind = kinds[place][0]
        later = kinds[place + 1 :]
        return sum(count for other, count in later if not self._is_covered(kind, by=other))

    def _is_covered(self, small: _Kind, *, by: _Kind) -> bool:
        known = self._covers.get((small, by))
        if known is None:
            known = self._covers[small, by] = self._compare(small, by)
        return known

    def _compare(self, small: _Kind, large: _Kind) -> bool:
        """Lay the parts of one into those of the other, heaviest first.

        Never says yes wrongly. A no where a cleverer matching exists costs time, not truth.
        """
        if small is large:
            return True
        small_parts, large_parts = list(small.parts), list(large.parts)
        while small_parts:
            if not large_parts:
                return False
            (part, number), (room, places) = small_parts.pop(), large_parts.pop()
            if not self._is_covered(part, by=room):
                return False
            if number > places:
                small_parts.append((part, number - places))
            elif places > number:
                large_parts.append((room, places - number))
        return True
