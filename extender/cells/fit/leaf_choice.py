"""Chooses the leaves inside a bin: lowest common ancestor first, then best fit.

The smallest cell that holds the member wins. Among equal cells the one wins whose parent has the
least room left, then its grandparent and so on, so that larger cells stay whole:

    pairs (0 1)(2 3) with leaf 0 used: a member of one leaf gets leaf 1, not 2.
"""

from collections.abc import Sequence

from extender.cells.state.tree import Cell


class LeafChooser:
    """Chooses idle leaves for several members; leaves that it chose before count as taken."""

    def __init__(self) -> None:
        self._taken: dict[Cell, int] = {}

    def take(self, bin_: Cell, count: int) -> tuple[Cell, ...]:
        """Choose idle leaves of a bin that has enough of them, in the order of the tree."""
        chosen = self._choose(bin_, count)
        for leaf in chosen:
            cell: Cell | None = leaf
            while cell is not None and cell.level <= bin_.level:
                self._taken[cell] = self._taken.get(cell, 0) + 1
                cell = cell.parent
        return tuple(chosen)

    def room(self, cell: Cell) -> int:
        """Number of idle leaves of a cell that were not chosen yet."""
        return cell.idle - self._taken.get(cell, 0)

    def _choose(self, bin_: Cell, count: int) -> Sequence[Cell]:
        if self.room(bin_) > count:
            bin_ = self._smallest(bin_, count)
        if self.room(bin_) == count:  # all leaves are needed
            return [leaf for leaf in bin_.leaves() if self.room(leaf)]
        return sorted(self._from_fewest_children(bin_, count), key=_order)

    def _smallest(self, bin_: Cell, count: int) -> Cell:
        for level in range(1, bin_.level):
            fitting = [cell for cell in bin_.at_level(level) if self.room(cell) >= count]
            if fitting:
                return min(fitting, key=lambda cell: self._crowding(cell, bin_.level))
        return bin_

    def _crowding(self, cell: Cell, level: int) -> tuple[int, ...]:
        """Room of the cell and of each ancestor up to a level, then the order of the cell."""
        order, rooms = cell.order, [self.room(cell)]
        while cell.level < level and cell.parent is not None:
            cell = cell.parent
            rooms.append(self.room(cell))
        return (*rooms, order)

    def _from_fewest_children(self, cell: Cell, count: int) -> list[Cell]:
        """Choose `count` leaves from as few children as possible, best fit for the last child."""
        if cell.is_leaf:
            return [cell]
        found: list[Cell] = []
        left = sorted(
            (child for child in cell.children if self.room(child) > 0),
            key=lambda child: (self.room(child), child.order),
        )
        while len(found) < count and left:
            need = count - len(found)
            tight = next((child for child in left if self.room(child) >= need), None)
            tight = tight or max(left, key=lambda child: (self.room(child), -child.order))
            left.remove(tight)
            found += self._from_fewest_children(tight, min(need, self.room(tight)))
        return found


def _order(cell: Cell) -> int:
    return cell.order
