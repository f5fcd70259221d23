"""The rows of the tables: by what gangs are put together, and how long those of a row waited."""

from collections.abc import Mapping, Sequence

from policy.classes import Classes
from timemachine.comparison import Grouping, Waits
from timemachine.model import Fate, Run

_MOST_CELLS = 64
NO_GROUP = "(no group)"
DEFAULT_CLASS = "(default)"

Rows = Mapping[Grouping, Sequence[str]]
"""The rows of each table, in their order."""


def rows_of(fates: Sequence[Fate], classes: Classes) -> Rows:
    """Return the rows for some gangs: classes from the highest on, sizes from the smallest."""
    found: dict[Grouping, dict[str, Fate]] = {grouping: {} for grouping in Grouping}
    for fate in fates:
        for grouping, rows in found.items():
            rows.setdefault(row_of(fate, grouping), fate)
    ranks = {name: place for place, name in enumerate(classes.names)}
    last = len(ranks)
    return {
        Grouping.VC: sorted(found[Grouping.VC]),
        Grouping.GROUP: sorted(found[Grouping.GROUP], key=lambda row: (row == NO_GROUP, row)),
        Grouping.CLASS: sorted(
            found[Grouping.CLASS],
            key=lambda row: (
                ranks.get(found[Grouping.CLASS][row].arrival.requested_class, last),
                row,
            ),
        ),
        Grouping.SIZE: sorted(
            found[Grouping.SIZE], key=lambda row: _size(found[Grouping.SIZE][row])
        ),
    }


def row_of(fate: Fate, grouping: Grouping) -> str:
    """Return the row of a gang: by the class that it asked for, and the group that it named."""
    match grouping:
        case Grouping.VC:
            return fate.arrival.vc
        case Grouping.GROUP:
            return fate.group or NO_GROUP
        case Grouping.CLASS:
            return fate.arrival.requested_class or DEFAULT_CLASS
        case Grouping.SIZE:
            return _size_text(_size(fate))


def _size(fate: Fate) -> int:
    """Return the power of two at which the size class of a gang begins."""
    return min(_MOST_CELLS, 1 << max(0, fate.arrival.leaf_cells.bit_length() - 1))


def _size_text(least: int) -> str:
    if least == _MOST_CELLS:
        return f"{least} and more"
    return str(least) if least == 1 else f"{least} to {2 * least - 1}"


def waits_of(run: Run, fates: Sequence[Fate]) -> Waits:
    """Return how long those of some gangs waited that were admitted."""
    admitted = [fate for fate in fates if fate.is_admitted]
    waits = sorted(run.wait(fate) for fate in admitted if fate.can_start)
    return Waits(
        gangs=len(admitted),
        mean=sum(waits) / len(waits) if waits else 0.0,
        median=_median(waits),
        p95=percentile(waits, 95),
        longest=waits[-1] if waits else 0.0,
        never_started=sum(fate.started is None for fate in admitted),
    )


def percentile(in_order: Sequence[float], share: int) -> float:
    """Return the least value that so many percent do not exceed; zero of none."""
    if not in_order:
        return 0.0
    return in_order[max(0, -(-len(in_order) * share // 100) - 1)]


def _median(in_order: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle ones; zero of none."""
    middle = len(in_order) // 2
    if not in_order:
        return 0.0
    return in_order[middle] if len(in_order) % 2 else (in_order[middle - 1] + in_order[middle]) / 2
