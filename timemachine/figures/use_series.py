"""How the cluster is used over time: leaf cells in use and wanted, and idle ones in fragments."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from policy.placement import Placement
from policy.submission import NodeName, VcName
from timemachine.comparison import UsePoint
from timemachine.figures.steps import Steps

_STRETCHES: Final = 240


class UseSeries:
    """Follows starts and ends."""

    def __init__(self, leaf_cells: Mapping[NodeName, int]) -> None:
        """`leaf_cells` are those of each node."""
        self._size = leaf_cells
        self._all = sum(leaf_cells.values())
        self._used_on: dict[NodeName, int] = {}
        self._in_fragments = 0
        """Idle leaf cells on nodes that are in use."""
        self._used = Steps()
        self._waiting = Steps()
        self._by_vc: dict[VcName, Steps] = {}
        self._fragmented = Steps()
        """The share of idle leaf cells that are in fragments."""
        self._has_idle = Steps()
        self._has_idle.set(1.0, at=-inf)

    def used_by(self) -> dict[VcName, int]:
        """Return the leaf cells in use by VC."""
        return {vc: round(steps.value) for vc, steps in self._by_vc.items()}

    def wait(self, leaf_cells: int, *, at: float) -> None:
        """A gang waits for so many leaf cells from now on; negative: it does not any more."""
        self._waiting.add(leaf_cells, at=at)

    def start(self, vc: VcName, places: Sequence[Placement], *, at: float) -> None:
        """A gang starts."""
        self._take(vc, places, 1, at=at)

    def end(self, vc: VcName, places: Sequence[Placement], *, at: float) -> None:
        """A gang ends."""
        self._take(vc, places, -1, at=at)

    def _take(self, vc: VcName, places: Sequence[Placement], sign: int, *, at: float) -> None:
        total = 0
        for place in places:
            count = sign * len(place.leaf_cells)
            total += count
            before = self._used_on.get(place.node, 0)
            after = self._used_on[place.node] = before + count
            size = self._size.get(place.node, 0)
            self._in_fragments += _rest(size, after) - _rest(size, before)
        self._used.add(total, at=at)
        self._by_vc.setdefault(vc, Steps()).add(total, at=at)
        idle = self._all - self._used.value
        self._fragmented.set(self._in_fragments / idle if idle > 0 else 0.0, at=at)
        self._has_idle.set(1.0 if idle > 0 else 0.0, at=at)

    def points(self, begin: float, end: float) -> list[UsePoint]:
        """Return the averages of equal stretches."""
        if end <= begin:
            return []
        width = (end - begin) / _STRETCHES
        by_vc = {
            vc: list(steps.averages(begin, width, _STRETCHES))
            for vc, steps in sorted(self._by_vc.items())
        }
        used = self._used.averages(begin, width, _STRETCHES)
        waiting = self._waiting.averages(begin, width, _STRETCHES)
        return [
            UsePoint(
                at=begin + place * width,
                used=in_use,
                waiting=wanted,
                by_vc={vc: averages[place] for vc, averages in by_vc.items()},
            )
            for place, (in_use, wanted) in enumerate(zip(used, waiting, strict=True))
        ]

    def utilisation(self, begin: float, end: float) -> float:
        """Return the share of leaf-cell-time that was in use."""
        offered = self._all * (end - begin)
        return self._used.integral(begin, end) / offered if offered > 0 else 0.0

    def fragmentation(self, begin: float, end: float) -> float:
        """Return the average share of idle leaf cells in fragments, while any were idle."""
        seconds = self._has_idle.integral(begin, end)
        return self._fragmented.integral(begin, end) / seconds if seconds > 0 else 0.0


def _rest(size: int, used: int) -> int:
    """Return the idle leaf cells of a node that is in use."""
    return max(0, size - used) if used > 0 else 0
