"""Which leaves of a bin a member gets: lowest common ancestor, then best fit, then least damage.

The smallest cell that holds the member wins. Among equals the one whose surroundings are most used
already, so that larger cells stay whole:

    pairs (0 1)(2 3) with leaf 0 used: a member of one leaf gets leaf 1, not 2.
"""

from collections.abc import Sequence

from extender.cells.state.tree import Cell


class LeafChooser:
    """Chooses leaves of idle cells for several members, without holding them yet."""

    def __init__(self) -> None:
        self._taken: dict[Cell, int] = {}

    def take(self, bin_: Cell, count: int) -> tuple[Cell, ...]:
        """Choose so many idle leaves of a bin that has them, in the order of the tree."""
        chosen = self._choose(bin_, count)
        for leaf in chosen:
            cell: Cell | None = leaf
            while cell is not None and cell.level <= bin_.level:
                self._taken[cell] = self._taken.get(cell, 0) + 1
                cell = cell.parent
        return tuple(chosen)

    def room(self, cell: Cell) -> int:
        """Idle leaves of a cell that were not chosen yet."""
        return cell.idle - self._taken.get(cell, 0)

    def _choose(self, bin_: Cell, count: int) -> Sequence[Cell]:
        if self.room(bin_) > count:
            bin_ = self._smallest(bin_, count)
        if self.room(bin_) == count:  # there is nothing to choose
            return [leaf for leaf in bin_.leaves() if self.room(leaf)]
        return sorted(self._fill(bin_, count), key=_order)

    def _smallest(self, bin_: Cell, count: int) -> Cell:
        for level in range(1, bin_.level):
            fitting = [cell for cell in bin_.at_level(level) if self.room(cell) >= count]
            if fitting:
                return min(fitting, key=lambda cell: self._crowding(cell, bin_.level))
        return bin_

    def _crowding(self, cell: Cell, level: int) -> tuple[int, ...]:
        """Room in the cell and in each cell around it up to a level, then the cell's order."""
        order, rooms = cell.order, [self.room(cell)]
        while cell.level < level and cell.parent is not None:
            cell = cell.parent
            rooms.append(self.room(cell))
        return (*rooms, order)

    def _fill(self, cell: Cell, count: int) -> list[Cell]:
        """Take `count` leaves from as few children as possible, the last one tightly."""
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
            found += self._fill(tight, min(need, self.room(tight)))
        return found


def _order(cell: Cell) -> int:
    return cell.order
