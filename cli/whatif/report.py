"""What a play says, as text for people. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cli.whatif.words import duration, share, table
from policy.wording import count_of, moment
from policy.wording import name as clean
from timemachine.comparison import (
    ChangeKind,
    Comparison,
    GangChange,
    Grouping,
    Side,
    Waits,
)

_WIDTH: Final = 100
_MOST_ROWS: Final = 12
_MOST_GANGS: Final = 5
_WORDS: Final[Mapping[ChangeKind, str]] = {
    ChangeKind.REFUSED: "refused after, admitted before",
    ChangeKind.ADMITTED: "admitted after, refused before",
    ChangeKind.LOWERED: "in a lower class",
    ChangeKind.RAISED: "in a higher class",
    ChangeKind.PREEMPTED: "preempted after, not before",
    ChangeKind.NOT_PREEMPTED: "preempted before, not after",
    ChangeKind.PLACED_ELSEWHERE: "placed elsewhere",
    ChangeKind.STARTS_EARLIER: "start earlier",
    ChangeKind.STARTS_LATER: "start later",
}

_NAMED: Final = (
    ChangeKind.REFUSED,
    ChangeKind.ADMITTED,
    ChangeKind.LOWERED,
    ChangeKind.RAISED,
    ChangeKind.PREEMPTED,
    ChangeKind.NOT_PREEMPTED,
)
"""The changes whose gangs are named beside those that gain and lose most."""


def format_comparison(found: Comparison) -> Iterator[str]:
    """Say what differs between both sides."""
    yield f"{count_of(found.gangs, 'gang')}: {found.source}"
    for line in found.changed or ("nothing: both sides are the same",):
        yield f"what differs: {line}"
    yield ""
    yield from table(list(_figures(found)), indent=0)
    for grouping in Grouping:
        rows = found.after.by.get(grouping, {})
        if len(rows) > 1 or grouping is Grouping.VC:
            yield ""
            yield from _waits(found, grouping)
    yield from _changes(found)
    for kind in _NAMED:
        changed = [one for one in found.others if one.kind is kind]
        yield from _gangs(f"are {_WORDS[kind]}", changed)
    yield from _gangs("gain most", found.gains)
    yield from _gangs("lose most", found.losses)
    yield from _anomalies(found)
    yield from format_unknown(found.unknown)


def _figures(found: Comparison) -> Iterator[Sequence[str]]:
    before, after = found.before, found.after
    yield "", "before", "after"
    yield "leaf cells", f"{before.leaf_cells:,}", f"{after.leaf_cells:,}"
    for title, field in (
        ("mean wait", "mean"),
        ("median wait", "median"),
        ("p95 wait", "p95"),
        ("longest wait", "longest"),
    ):
        yield title, *(duration(getattr(side.all, field)) for side in (before, after))
    yield "never started", *(f"{side.all.never_started:,}" for side in (before, after))
    for field in ("refused", "lowered", "preemptions"):
        yield field, *(f"{getattr(side, field):,}" for side in (before, after))
    for field in ("utilisation", "fragmentation"):
        yield field, *(share(getattr(side, field)) for side in (before, after))
    yield "longest time first in a queue", *(_head(side) for side in (before, after))


def _head(side: Side) -> str:
    return duration(side.longest_head_wait)


_NO_WAITS: Final = Waits(gangs=0, mean=0.0, median=0.0, p95=0.0, longest=0.0)


def _waits(found: Comparison, grouping: Grouping) -> Iterator[str]:
    before, after = found.before.by.get(grouping, {}), found.after.by.get(grouping, {})
    names = sorted(after, key=lambda name: -after[name].gangs)
    shown = dict.fromkeys(names[:_MOST_ROWS])
    rows: list[Sequence[str]] = [
        (
            f"waits by {_title(grouping)}",
            *("gangs before", "after"),
            *("mean before", "after"),
            *("p95 before", "after"),
        )
    ]
    for name in (one for one in after if one in shown):
        one, other = before.get(name, _NO_WAITS), after[name]
        waits = (one.mean, other.mean, one.p95, other.p95)
        gangs = (f"{one.gangs:,}", f"{other.gangs:,}")
        rows.append((f"  {clean(name)}", *gangs, *map(duration, waits)))
    yield from table(rows, indent=0)
    if len(names) > len(shown):
        yield f"  and {len(names) - len(shown):,} more, in the JSON and the HTML report"


def _title(grouping: Grouping) -> str:
    match grouping:
        case Grouping.VC:
            return "VC"
        case Grouping.SIZE:
            return "leaf cells"
        case _:
            return str(grouping)


def _changes(found: Comparison) -> Iterator[str]:
    told = [(kind, found.counts.get(kind, 0)) for kind in ChangeKind]
    rows = [(f"  {_WORDS[kind]}", f"{number:,}") for kind, number in told if number]
    yield ""
    if not rows:
        yield "no gang fares differently"
        return
    yield "gangs that fare differently"
    yield from table(rows, indent=0)


def _gangs(title: str, gangs: Sequence[GangChange]) -> Iterator[str]:
    if not gangs:
        return
    yield ""
    yield f"gangs that {title}"
    for one in gangs[:_MOST_GANGS]:
        who = f"{clean(one.user) or 'no user'}, VC {clean(one.vc)}"
        size = count_of(one.leaf_cells, "leaf cell")
        yield f"  {clean(one.gang)} ({who}, {size}, {moment(one.submitted)}){_starts(one)}"
        yield from _wrap(f"before: {one.before}", 4)
        yield from _wrap(f"after: {one.after}", 4)
    if len(gangs) > _MOST_GANGS:
        yield f"  and {len(gangs) - _MOST_GANGS:,} more, in the JSON and the HTML report"


def _anomalies(found: Comparison) -> Iterator[str]:
    if not found.anomalies:
        return
    yield ""
    yield "VCs that wait longer after than alone with their promise"
    rows: list[Sequence[str]] = [("", "mean", "p95")]
    for one in found.anomalies:
        rows.append((f"  {clean(one.vc)}", *map(duration, (one.mean_seconds, one.p95_seconds))))
    yield from table(rows, indent=0)


def _starts(one: GangChange) -> str:
    if abs(one.seconds) < 1.0:
        return ""
    return f": starts {duration(abs(one.seconds))} {'earlier' if one.seconds < 0 else 'later'}"


def format_unknown(lines: Sequence[str]) -> Iterator[str]:
    """Say what a simulation cannot know."""
    if lines:
        yield ""
        yield "what this cannot know"
    for line in lines:
        yield from _wrap(f"- {line}", 2)


def _wrap(text: str, indent: int) -> Iterator[str]:
    space = " " * indent
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=space,
        subsequent_indent=f"{space}  ",
        break_on_hyphens=False,
    )
