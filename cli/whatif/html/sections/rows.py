"""The rows of both sides beside each other, the most important ones, and all others as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from timemachine.comparison import Comparison, Grouping, Waits

MOST_ROWS: Final = 20
_TITLES: Final = {
    Grouping.VC: "VC",
    Grouping.GROUP: "group",
    Grouping.CLASS: "class",
    Grouping.SIZE: "size",
}
UNNAMED: Final = "(none)"


@dataclass(frozen=True, slots=True)
class Row:
    """The waits of the gangs of one VC, group, class or size on both sides."""

    name: str
    before: Waits | None
    after: Waits | None
    others: int = 0
    """So many rows that were put together, which have no percentiles of their own."""

    @property
    def gangs(self) -> int:
        """How many gangs were admitted on both sides, as far as numbers tell."""
        return 0 if self.before is None or self.after is None else self._fewer

    @property
    def _fewer(self) -> int:
        assert self.before is not None
        assert self.after is not None
        return min(self.before.gangs, self.after.gangs)

    @property
    def impact(self) -> float:
        """How much longer its gangs wait in all, in seconds; negative: less long."""
        if self.before is None or self.after is None:
            return 0.0
        return (self.after.mean - self.before.mean) * self._fewer


def title_of(grouping: Grouping) -> str:
    """Name a grouping within a sentence."""
    return _TITLES[grouping]


def pair_rows(comparison: Comparison, grouping: Grouping) -> list[Row]:
    """Put the rows of both sides beside each other, in the order of the comparison."""
    before = comparison.before.by.get(grouping, {})
    after = comparison.after.by.get(grouping, {})
    names = dict.fromkeys((*before, *after))
    return [Row(name, before.get(name), after.get(name)) for name in names]


def telling_rows(comparison: Comparison, grouping: Grouping) -> list[Row]:
    """Return the rows, but none if a single one says what all gangs together say."""
    rows = pair_rows(comparison, grouping)
    return rows if len(rows) > 1 or grouping is Grouping.VC else []


def most_important(rows: Sequence[Row], *, most: int = MOST_ROWS) -> list[Row]:
    """Keep the rows that change most or have most gangs, in order; add the others up."""
    if len(rows) <= most:
        return list(rows)
    order = sorted(range(len(rows)), key=lambda i: (-abs(rows[i].impact), -_size(rows[i]), i))
    kept = set(order[:most])
    others = [row for index, row in enumerate(rows) if index not in kept]
    return [*(row for index, row in enumerate(rows) if index in kept), _together(others)]


def _size(row: Row) -> int:
    return sum(side.gangs for side in (row.before, row.after) if side is not None)


def _together(rows: Sequence[Row]) -> Row:
    """Add rows up. Percentiles of the whole do not follow from those of its parts."""
    before = [row.before for row in rows if row.before is not None]
    after = [row.after for row in rows if row.after is not None]
    return Row(f"{len(rows):,} others", _sum(before), _sum(after), others=len(rows))


def _sum(waits: Sequence[Waits]) -> Waits | None:
    gangs = sum(one.gangs for one in waits)
    if not gangs:
        return None
    unknown = float("nan")
    return Waits(
        gangs=gangs,
        mean=sum(one.mean * one.gangs for one in waits) / gangs,
        median=unknown,
        p95=unknown,
        longest=max(one.longest for one in waits),
        never_started=sum(one.never_started for one in waits),
    )
