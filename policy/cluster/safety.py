"""The proof that every VC can get all that it was promised, at the same time.

Two cells are disjoint, or one contains the other. A pinned cell is one particular cell, so the
claimed ones are removed first; what remains is a forest of intact cells. Then the promises are met
from the highest level down. Why that is exact:

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

Levels without promises do not matter and are left out of the comparison. The number of choices is
bounded; beyond that the answer is still safe: promises that are not proven to fit are refused, with
a message that says so.

This is the one definition of VC safety. A document is checked by `find_shortage`; the cell engine
keeps a `Forest` of the cells that no VC uses, and asks it about the promises that are not used.
"""

from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from policy.topology import Chain, PhysicalCell, PinnedCellId

MAX_STEPS: Final = 20_000
"""Choices tried per chain; they take half a second."""
MAX_KINDS: Final = 200
"""Kinds of cells of one level among which choices are tried; beyond, only the smallest go."""
_STEPS_PER_PAUSE: Final = 50
"""Choices after which a search pauses: they take a few milliseconds at most."""

T = TypeVar("T")
Stepwise = Generator[None, None, T]
"""Work that yields after each step and returns its result in the end."""


def run_to_end(steps: Stepwise[T]) -> T:
    """Do all steps without a pause and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


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
    """Return why so many cells per level cannot all be given beside the claimed pinned cells.

    None is the proof that they can. `available` is the most that any choice leaves at that level.
    """
    needed = {level: count for level, count in promised.items() if count > 0}
    if not needed:
        return None
    forest = Forest(needed)
    for cell in chain.cells:
        _carve(forest, cell, frozenset(pinned))
    return forest.find_shortage(needed)


Composition = tuple[tuple["Composition", int], ...]
"""What a cell is made of: what each child is made of, with their numbers, sorted. A leaf is ()."""


def plant(composition: Composition, *, top_level: int, levels: Iterable[int]) -> "Forest":
    """Return the cells of these levels of a chain without pinned cells, all without a claim.

    `composition` is that of the whole chain. The cost is that of the cells that are different.
    """
    forest = Forest(levels)
    for top, times in composition:
        forest.add(_bag_of(forest, top, top_level), level=top_level, times=times)
    return forest


def _bag_of(forest: "Forest", composition: Composition, level: int) -> "Bag":
    if level < forest.levels[-1]:
        return ()
    parts = [(_bag_of(forest, part, level - 1), times) for part, times in composition]
    return forest.bag(level, [bag for bag, times in parts for _ in range(times)])


@dataclass(eq=False, slots=True)
class _Kind:
    """Cells that are alike, as far as the promised levels go."""

    parts: tuple[tuple["_Kind", int], ...]
    """Kinds of cells of the next promised level within, with their numbers."""
    order: int
    weight: int
    """Promised-level cells within, itself included: a cell never covers a heavier one."""


Bag = tuple[tuple[_Kind, int], ...]
"""What a cell offers at the next promised level: kinds, with their numbers."""
_Pool = dict[int, Counter[_Kind]]


class Forest:
    """Intact cells without a claim, at the promised levels; it may grow and shrink."""

    def __init__(self, levels: Iterable[int]) -> None:
        self.levels = tuple(sorted(levels, reverse=True))
        self._pool: _Pool = {level: Counter() for level in (*self.levels, 0)}
        self._kinds: dict[tuple[int, Bag], _Kind] = {}
        self._covers: dict[tuple[_Kind, _Kind], bool] = {}

    def bag(self, level: int, parts: Sequence[Bag]) -> Bag:
        """What a cell of a level offers that consists of these parts; equal ones are the same."""
        merged = _merge(parts)
        return ((self._kind(level, merged), 1),) if level in self.levels else merged

    def _kind(self, level: int, parts: Bag) -> _Kind:
        known = self._kinds.get((level, parts))
        if known is None:
            weight = 1 + sum(kind.weight * count for kind, count in parts)
            known = _Kind(parts=parts, order=len(self._kinds), weight=weight)
            self._kinds[level, parts] = known
        return known

    def add(self, bag: Bag, *, level: int, times: int = 1) -> None:
        """Put a cell of a level into it that lies in no other one there; -1 takes it out."""
        kinds = self._pool[next((own for own in self.levels if own <= level), 0)]
        for kind, count in bag:
            kinds[kind] += count * times
            if not kinds[kind]:
                del kinds[kind]

    def contents(self) -> Hashable:
        """A value that is equal for equal contents."""
        return frozenset(
            (level, kind, count)
            for level, kinds in self._pool.items()
            for kind, count in kinds.items()
        )

    def find_shortage(
        self, promised: Mapping[int, int], *, max_steps: int | None = None
    ) -> Shortage | None:
        """Return why so many cells of its levels cannot all be given; None if they can."""
        return run_to_end(self.find_shortage_stepwise(promised, max_steps=max_steps))

    def find_shortage_stepwise(
        self, promised: Mapping[int, int], *, max_steps: int | None = None
    ) -> Stepwise[Shortage | None]:
        """Like `find_shortage`, with pauses; the forest must stay as it is meanwhile."""
        search = _Search(
            levels=self.levels,
            promised=promised,
            pool=self._pool,
            covers=self._covers,
            steps=MAX_STEPS if max_steps is None else max_steps,
        )
        return None if (yield from search.fits_stepwise()) else search.shortage()


def _carve(forest: Forest, cell: PhysicalCell, pinned: frozenset[PinnedCellId]) -> None:
    """Add what the pinned cells leave of a cell: intact cells that lie in no other such."""
    bag = _visit(forest, cell, pinned)
    if bag is not None:
        forest.add(bag, level=cell.level)


def _visit(forest: Forest, cell: PhysicalCell, pinned: frozenset[PinnedCellId]) -> Bag | None:
    """Return what the cell offers; None if pinned cells break it up (its parts are added)."""
    if cell.pinned is not None and cell.pinned in pinned:
        return None
    if not pinned and cell.level < forest.levels[-1]:
        return ()
    bags = [_visit(forest, child, pinned) for child in cell.children]
    whole = [bag for bag in bags if bag is not None]
    if len(whole) == len(bags):
        return forest.bag(cell.level, whole)
    for bag in whole:
        forest.add(bag, level=cell.level - 1)
    return None


def _merge(bags: Sequence[Bag]) -> Bag:
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
    covers: dict[tuple[_Kind, _Kind], bool]
    """What was found out about kinds before."""
    steps: int
    _is_complete: bool = True
    _worst: tuple[int, int] = (0, 0)
    """The lowest level that any choice reached, as its place in `levels`, and what was there."""

    def fits_stepwise(self) -> Stepwise[bool]:
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

    def _meet(self, place: int, there: Counter[_Kind]) -> Stepwise[bool]:
        needed, available = self.promised[self.levels[place]], there.total()
        if available < needed:
            self._worst = max(self._worst, (place, available))
            return False
        if place == len(self.levels) - 1:
            return True
        for left in self._choices(there, needed):
            if left is None:
                yield
            elif (yield from self._meet(place + 1, self._opened(place, left))):
                return True
        return False

    def _opened(self, place: int, left: Iterable[tuple[_Kind, int]]) -> Counter[_Kind]:
        """What the cells that were not given offer one promised level down."""
        there = Counter(self.pool.get(self.levels[place + 1], Counter()))
        for kind, count in left:
            for part, number in kind.parts:
                there[part] += number * count
        return there

    def _choices(
        self, there: Counter[_Kind], needed: int
    ) -> Iterator[list[tuple[_Kind, int]] | None]:
        """Yield what each choice of so many cells leaves, the lightest choice first; None pauses.

        A kind is not taken while one that it covers is left: see the exchange above.
        """
        kinds = sorted(((kind, n) for kind, n in there.items() if n > 0), key=lambda x: _rank(x[0]))
        stack: list[tuple[int, int, _Left | None]] = [(0, needed, None)]
        while stack:
            place, missing, left = stack.pop()
            if self.steps <= 0:
                self._is_complete = False
                return
            self.steps -= 1
            if self.steps % _STEPS_PER_PAUSE == 0:
                yield None
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
        known = self.covers.get((small, by))
        if known is None:
            known = self.covers[small, by] = self._compare(small, by)
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
