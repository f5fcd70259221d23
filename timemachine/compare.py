"""Puts two runs of the same arrivals side by side."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from timemachine.comparison import (
    Anomaly,
    ChangeKind,
    Comparison,
    GangChange,
    Grouping,
    Side,
    Waits,
)
from timemachine.model import Fate, Run
from timemachine.sides.changes import MOST_CHANGES, Changes, Pair
from timemachine.sides.rows import Rows, row_of, rows_of, waits_of
from timemachine.sides.unknown import unknown_of

_BY_START = (ChangeKind.STARTS_EARLIER, ChangeKind.STARTS_LATER)


def compare(
    before: Run,
    after: Run,
    *,
    source: str,
    changed: Sequence[str] = (),
    anomalies: Sequence[Anomaly] = (),
    unknown: Sequence[str] = (),
) -> Comparison:
    """Compare two runs; `unknown` are sentences beside those about every simulation."""
    changes = Changes(before, after)
    found = [(kind, pair) for pair in changes.pairs() for kind in changes.kinds(pair)]
    fates = [*_counted(before), *_counted(after)]
    rows = rows_of(fates, after.world.policy.classes)
    return Comparison(
        source=source,
        begin=before.begin,
        end=max(before.end, after.end),
        gangs=len(changes.pairs()),
        changed=tuple(changed),
        before=_side(before, rows),
        after=_side(after, rows),
        counts=Counter(kind for kind, _ in found),
        gains=_most(changes, found, ChangeKind.STARTS_EARLIER),
        losses=_most(changes, found, ChangeKind.STARTS_LATER),
        others=list(_others(changes, found)),
        anomalies=tuple(anomalies),
        unknown=(*unknown_of(before, after), *unknown),
    )


def _counted(run: Run) -> list[Fate]:
    return [fate for fate in run.fates if fate.arrival.is_counted]


def _most(
    changes: Changes, found: Sequence[tuple[ChangeKind, Pair]], kind: ChangeKind
) -> list[GangChange]:
    """Return the largest changes of starts, of equal ones the first that was submitted."""
    pairs = [pair for one, pair in found if one is kind]
    largest = sorted(pairs, key=lambda pair: -abs(changes.seconds(pair)))[:MOST_CHANGES]
    return [changes.change(pair, kind) for pair in largest]


def _others(changes: Changes, found: Sequence[tuple[ChangeKind, Pair]]) -> Iterator[GangChange]:
    listed: Counter[ChangeKind] = Counter()
    for kind, pair in found:
        if kind not in _BY_START and listed[kind] < MOST_CHANGES:
            listed[kind] += 1
            yield changes.change(pair, kind)


def _side(run: Run, rows: Rows) -> Side:
    counted = _counted(run)
    return Side(
        title=run.world.title,
        leaf_cells=sum(node.leaf_count for node in run.world.nodes),
        all=waits_of(run, counted),
        by={grouping: _table(run, counted, grouping, names) for grouping, names in rows.items()},
        use=run.use,
        utilisation=run.utilisation,
        fragmentation=run.fragmentation,
        refused=sum(not fate.is_admitted for fate in counted),
        lowered=sum(fate.is_lowered for fate in counted),
        preemptions=sum(fate.preemptions for fate in counted),
        longest_head_wait=run.longest_head_wait,
    )


def _table(
    run: Run, fates: Iterable[Fate], grouping: Grouping, names: Sequence[str]
) -> Mapping[str, Waits]:
    of_row: dict[str, list[Fate]] = {name: [] for name in names}
    for fate in fates:
        of_row[row_of(fate, grouping)].append(fate)
    return {name: waits_of(run, found) for name, found in of_row.items()}
