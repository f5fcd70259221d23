"""The buddy free list of one chain, and the proof that all promises to VCs can still be kept.

A cell is *unclaimed* if no preassigned cell is mapped to it, to an ancestor or to a descendant. The
largest unclaimed cells form the free list, by level. Mapping a preassigned cell to a part of a
larger free cell splits this cell; unmapping merges it. VC safety is the invariant

    slack(level) >= 0 for every level, from the top:
    slack(level) = free cells + children of the slack one level up - promised and unused cells

In words: serve the unused promises from the largest down, and split what is left over. Where every
cell of a level has the same number of children it does not matter *which* free cell serves a
promise, so counting is exact. The rule that keeps the invariant: mapping a promise of level L to a
free cell of level L changes no slack; cutting it out of a free cell of level M takes one from the
slack of each level L+1..M. So a cell is safe to take if and only if its free cell is not higher
than the first level above L without slack.

    2 racks of 2 nodes; VC a was promised 1 rack, VC b 2 nodes, nothing is used:
    slack(rack) = 2 - 1 = 1, slack(node) = 0 + 2*1 - 2 = 0: safe.
    b uses a node of rack 0: free are rack 1 and a node; slack(rack) = 1 - 1 = 0,
    slack(node) = 1 + 0 - 1 = 0. b's next node must be the other one of rack 0: rack 1 has no slack.

Where cells are derived from live nodes, cells of a level may differ in their number of children.
Then `policy.cluster.safety` answers the question by an exact search. It works on the distinct kinds
of free cells and their counts, so its cost depends on the variety of the cells and not on the size
of the cluster; answers are cached. A search that exceeds its limit answers "not safe": a gang may
wait without need, but no promise is broken.
"""

from bisect import bisect_left, insort
from collections.abc import Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager

from extender.cells.state.tree import Cell, ChainTree
from policy.cluster.safety import Bag, Forest

_STEPS = 2_000
"""Choices that a search may try within one decision."""
_CACHED_ANSWERS = 10_000
"""Answers of searches that are cached; then the cache is cleared."""


class Supply:
    """Free list and promises of one chain; lists are indexed by level, index 0 is unused."""

    def __init__(self, tree: ChainTree) -> None:
        self._tree = tree
        self.is_uniform = tree.is_uniform()
        self._free: list[list[int]] = [[] for _ in range(tree.top_level + 1)]
        self.unused: list[int] = [0] * (tree.top_level + 1)
        """By level: cells that were promised to any VC and are not mapped."""
        self._promised: list[int] = []
        """Levels of which any cell was promised, used or not."""
        self._forest: Forest | None = None
        """The free list as kinds of cells with their counts; built when the search needs it."""
        self._bags: dict[int, Bag] = {}
        self._answers: dict[Hashable, bool] = {}
        for top in tree.root.children:
            insort(self._free[tree.top_level], top.order)

    def promise(self, unused: Mapping[int, int]) -> None:
        """Set the number of unused promised cells by level; all promised levels must be keys."""
        self.unused = [unused.get(level, 0) for level in range(len(self.unused))]
        if self._promised != sorted(unused):
            self._promised = sorted(unused)
            self._forest = None

    def unused_promises(self) -> dict[int, int]:
        """The number of unused promised cells by level, as `promise` takes it."""
        return {level: self.unused[level] for level in self._promised}

    def add_top(self, top: Cell) -> None:
        """Add a top-level cell to a chain of which nothing is promised."""
        self._put(top)
        self.is_uniform = False

    @contextmanager
    def changing(self, parent: Cell) -> Iterator[None]:
        """Surround the insertion or removal of an unclaimed child of `parent`."""
        whole = self._free_cell_at(parent)
        if whole is not None:
            self._count(whole, -1)
        yield
        for cell in parent.upwards():
            self._bags.pop(cell.order, None)
        if whole is not None:
            self._count(whole, 1)
        self.is_uniform = self._tree.is_uniform()

    def add(self, cell: Cell) -> None:
        """Add a new cell to the free list, unless it is part of a free or claimed cell."""
        if self._is_listed_alone(cell):
            self._put(cell)

    def discard(self, cell: Cell) -> None:
        """Take a cell that is about to be removed off the free list, if it is on it."""
        if self._is_listed_alone(cell):
            self._drop(cell)
        self._forget_bags(cell)

    def _is_listed_alone(self, cell: Cell) -> bool:
        """True if an unclaimed cell is on the free list itself, not as part of a larger cell."""
        assert cell.parent is not None
        is_split = cell.parent.claims_below > 0 or cell.parent.parent is None
        return is_split and cell.enclosing_claim() is None

    def _free_cell_at(self, cell: Cell) -> Cell | None:
        """The free cell that contains a cell; None if a part of the cell is claimed."""
        if cell.parent is None or not cell.is_unclaimed():
            return None
        return self.free_cell_around(cell)

    def _forget_bags(self, cell: Cell) -> None:
        self._bags.pop(cell.order, None)
        for child in cell.children:
            self._forget_bags(child)

    def free(self, level: int) -> Iterator[Cell]:
        """The free list of a level, in order."""
        for order in self._free[level]:
            yield self._tree.cells[order]

    def free_count(self, level: int) -> int:
        """Number of cells on the free list of a level."""
        return len(self._free[level])

    def is_safe(self) -> bool:
        """True if every VC can still get all cells that it was promised and does not use."""
        return min(self._count_slack()) >= 0 if self.is_uniform else self._is_proven()

    def highest_split(self, level: int) -> int:
        """The highest level of a free cell that may be split to get a cell of `level`."""
        if not self.is_uniform:
            return self._tree.top_level  # counting is not exact: callers ask `is_safe` afterwards
        slack = self._count_slack()
        highest = level
        while highest < self._tree.top_level and slack[highest + 1] > 0:
            highest += 1
        return highest

    def split(self, cell: Cell) -> None:
        """Take an unclaimed cell off the free list, splitting the free cell that contains it."""
        inner, outer = cell, cell.parent
        while outer is not None and outer.parent is not None and outer.claims_below == 0:
            for child in outer.children:
                if child is not inner:
                    self._put(child)
            inner, outer = outer, outer.parent
        self._drop(inner)
        for above in cell.upwards():
            if above is not cell:
                above.claims_below += 1

    def merge(self, cell: Cell) -> None:
        """Return a cell to the free list, merging it with its buddies as far as they are free."""
        for above in cell.upwards():
            if above is not cell:
                above.claims_below -= 1
        whole = cell
        outer = cell.parent
        while outer is not None and outer.parent is not None and outer.claims_below == 0:
            for child in outer.children:
                if child is not whole:
                    self._drop(child)
            whole, outer = outer, outer.parent
        self._put(whole)

    def free_cell_around(self, cell: Cell) -> Cell:
        """The cell of the free list that contains an unclaimed cell."""
        while cell.parent is not None and cell.parent.parent and cell.parent.claims_below == 0:
            cell = cell.parent
        return cell

    def _put(self, cell: Cell) -> None:
        insort(self._free[cell.level], cell.order)
        self._count(cell, 1)

    def _drop(self, cell: Cell) -> None:
        orders = self._free[cell.level]
        del orders[bisect_left(orders, cell.order)]
        self._count(cell, -1)

    def _count(self, cell: Cell, times: int) -> None:
        if self._forest is not None:
            self._forest.add(self._bag(self._forest, cell), level=cell.level, times=times)

    def _count_slack(self) -> list[int]:
        """By level: cells that can be taken without breaking a promise; index 0 is unused."""
        slack, above = [0] * (self._tree.top_level + 1), 0
        for level in range(self._tree.top_level, 0, -1):
            children = self._tree.levels[level].child_count if level < self._tree.top_level else 0
            above = len(self._free[level]) + max(above, 0) * children - self.unused[level]
            slack[level] = above
        return slack

    def _is_proven(self) -> bool:
        if self._forest is None:
            for _ in self.build_stepwise():
                pass
        forest = self._forest
        assert forest is not None
        question = (*self.unused, forest.contents())
        known = self._answers.get(question)
        if known is None:
            if len(self._answers) >= _CACHED_ANSWERS:
                self._answers.clear()
            promised = {level: self.unused[level] for level in forest.levels}
            known = forest.find_shortage(promised, max_steps=_STEPS) is None
            self._answers[question] = known
        return known

    def build_stepwise(self) -> Generator[None, None, None]:
        """Build the index that the search needs; yields after each free cell."""
        self._bags.clear()
        self._answers.clear()
        forest = Forest(self._promised or (self._tree.top_level,))
        for level in range(1, self._tree.top_level + 1):
            for cell in self.free(level):
                forest.add(self._bag(forest, cell), level=level)
                yield
        self._forest = forest

    def _bag(self, forest: Forest, cell: Cell) -> Bag:
        known = self._bags.get(cell.order)
        if known is None:
            parts = [self._bag(forest, child) for child in cell.children]
            known = self._bags[cell.order] = forest.bag(cell.level, parts)
        return known
