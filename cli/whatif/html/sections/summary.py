"""What a comparison says, in a headline, in sentences and in main figures."""

from collections.abc import Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import unfold
from cli.whatif.html.frame.units import (
    Direction,
    change,
    counted,
    direction,
    duration,
    listed,
    moment,
    share,
)
from cli.whatif.html.sections.gangs import KIND_TITLES
from cli.whatif.html.sections.pairs import judge
from cli.whatif.html.sections.rows import UNNAMED, Row, pair_rows
from timemachine.comparison import Comparison, Grouping

_MOST_NAMED: Final = 3
_LEAST_IMPACT: Final = 60.0
_MOST_CHANGES: Final = 4
_SIMULATED: Final = "Simulated, not measured: the same gangs with the same run times on both sides."


def headline(comparison: Comparison) -> str:
    """Say in one sentence what the change does to waits, and who pays for it."""
    before, after = comparison.before.all, comparison.after.all
    if not before.gangs and not after.gangs:
        return "No gang was admitted: there is nothing to compare."
    kind = direction(before.mean, after.mean)
    costs = _costs(comparison)
    if kind is Direction.SAME:
        if not costs and not any(comparison.counts.values()):
            return "Nothing changes: every gang fares the same."
        first = "On average, gangs wait as long as before"
    else:
        first = f"Gangs wait {change(before.mean, after.mean)} on average"
    joint = ", and " if kind is Direction.MORE else ", but "
    return joint.join(filter(None, (first, listed(costs)))) + "."


def _costs(comparison: Comparison) -> list[str]:
    """Say what gets worse besides the mean wait of all gangs."""
    before, after = comparison.before, comparison.after
    costs = []
    if losing := len(_rows(comparison, Direction.MORE)):
        total = len(pair_rows(comparison, Grouping.VC))
        wait = "waits" if losing == 1 else "wait"
        costs.append(f"{losing:,} of {counted(total, 'VC')} {wait} longer")
    if (refused := after.refused - before.refused) > 0:
        costs.append(f"{refused:,} more {'is' if refused == 1 else 'are'} refused")
    if (never := after.all.never_started - before.all.never_started) > 0:
        costs.append(f"{never:,} more never {'starts' if never == 1 else 'start'}")
    return costs


def format_summary(comparison: Comparison) -> Markup:
    """Show the main figures, and say who waits less and who waits more."""
    sentences = [
        *_all_waits(comparison),
        *_who(comparison, Direction.LESS),
        *_who(comparison, Direction.MORE),
        *_changes(comparison),
        *_anomalies(comparison),
    ]
    link = tag("a", "What that cannot know", href="#unknown")
    said = join(
        (
            tag("ul", *(tag("li", one) for one in sentences), class_="says"),
            tag("p", _SIMULATED, " ", link, ".", class_="note"),
        )
    )
    return join(
        (_tiles(comparison), tag("div", tag("div", said), _facts(comparison), class_="two"))
    )


def _facts(comparison: Comparison) -> Markup:
    """List what differs between both sides, and where the arrivals are from."""
    changed = comparison.changed or ("Nothing: both sides are the same.",)
    lines = tag("ul", *(tag("li", tag("bdi", line)) for line in changed[:_MOST_CHANGES]))
    if rest := changed[_MOST_CHANGES:]:
        more = tag("ul", *(tag("li", tag("bdi", line)) for line in rest))
        lines = join((lines, unfold(f"{len(rest):,} more", more)))
    span = f"{moment(comparison.begin)} to {moment(comparison.end)} UTC"
    facts = (
        ("What changed", lines),
        *_titles(comparison),
        (
            "Arrivals",
            join((counted(comparison.gangs, "gang"), ", ", tag("bdi", comparison.source))),
        ),
        ("Time", span),
    )
    entries = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    return tag("dl", *entries, class_="facts")


def _titles(comparison: Comparison) -> list[tuple[str, Markup]]:
    """Name both sides, if they have names of their own."""
    sides = (("Before", comparison.before), ("After", comparison.after))
    return [(name, tag("bdi", one.title)) for name, one in sides if one.title != name.lower()]


def _tiles(comparison: Comparison) -> Markup:
    before, after = comparison.before, comparison.after
    waits = (
        ("Mean wait", before.all.mean, after.all.mean),
        ("95 of 100 start within", before.all.p95, after.all.p95),
        ("Longest wait", before.all.longest, after.all.longest),
    )
    return tag(
        "dl",
        *(_tile(title, duration(a), duration(b), direction(a, b)) for title, a, b in waits),
        _tile(
            "Utilisation",
            share(before.utilisation),
            share(after.utilisation),
            judge(
                before.utilisation,
                after.utilisation,
                is_less_better=False if before.leaf_cells == after.leaf_cells else None,
                least=0.0005,
            ),
        ),
        _tile(
            "Preemptions",
            f"{before.preemptions:,}",
            f"{after.preemptions:,}",
            judge(before.preemptions, after.preemptions, is_less_better=True),
        ),
        _tile(
            "Refused gangs",
            f"{before.refused:,}",
            f"{after.refused:,}",
            judge(before.refused, after.refused, is_less_better=True),
        ),
        class_="tiles",
    )


def _tile(title: str, before: str, after: str, kind: Direction) -> Markup:
    was = "as before" if before == after else f"before: {before}"
    return tag(
        "div",
        tag("dt", title),
        tag("dd", after, class_=f"value {kind}"),
        tag("dd", was, class_="was"),
    )


def _all_waits(comparison: Comparison) -> Sequence[Markup]:
    before, after = comparison.before.all, comparison.after.all
    if not before.gangs or not after.gangs:
        return ()
    if direction(before.mean, after.mean) is Direction.SAME:
        told = join(("Gangs wait ", _strong(duration(after.mean)), " on average, as before."))
    else:
        told = join(
            (
                *("Gangs wait ", _strong(duration(after.mean)), " on average instead of "),
                *(_strong(duration(before.mean)), "; 95 of 100 start within "),
                *(_strong(duration(after.p95)), " instead of ", _strong(duration(before.p95)), "."),
            )
        )
    never = (before.never_started, after.never_started)
    if not any(never):
        return (told,)
    count, instead = counted(never[1], "gang"), f"instead of {never[0]:,}"
    verb = "has" if never[1] == 1 else "have"
    ending = "as before" if never[0] == never[1] else instead
    return (told, join((f"{count} {verb} not started at the end, {ending}.",)))


def _who(comparison: Comparison, kind: Direction) -> Sequence[Markup]:
    rows = _rows(comparison, kind)
    if not rows:
        is_told = kind is Direction.MORE and comparison.after.by.get(Grouping.VC)
        return (join(("No VC waits noticeably longer.",)),) if is_told else ()
    named = [_told(row) for row in rows[:_MOST_NAMED]]
    if len(rows) > _MOST_NAMED:
        named.append(join((counted(len(rows) - _MOST_NAMED, "other"),)))
    parts = [part for one in named for part in (one, "; ")][:-1]
    is_less = kind is Direction.LESS
    intro = "Who waits less" if is_less else "Who waits longer"
    return (join((tag("b", f"{intro}: ", class_=kind), *parts, ".")),)


def _told(row: Row) -> Markup:
    assert row.before is not None
    assert row.after is not None
    waits = f"{duration(row.before.mean)} → {duration(row.after.mean)}"
    return join(
        (name_of(row.name or UNNAMED), f" ({waits} on average, {counted(row.gangs, 'gang')})")
    )


def _rows(comparison: Comparison, kind: Direction) -> list[Row]:
    """Return the VCs whose mean wait changes in one direction, those with most effect first."""
    rows = [
        row
        for row in pair_rows(comparison, Grouping.VC)
        if row.before is not None
        and row.after is not None
        and abs(row.impact) >= _LEAST_IMPACT
        and direction(row.before.mean, row.after.mean) is kind
    ]
    return sorted(rows, key=lambda row: (-abs(row.impact), row.name))


def _changes(comparison: Comparison) -> Sequence[Markup]:
    told = [
        f"{count:,} {title}"
        for kind, title in KIND_TITLES.items()
        if (count := comparison.counts.get(kind, 0))
    ]
    if not told:
        return ()
    return (join((f"Of {counted(comparison.gangs, 'gang')}: {listed(told)}.",)),)


def _anomalies(comparison: Comparison) -> Sequence[Markup]:
    worse = [one for one in comparison.anomalies if one.mean_seconds >= 1]
    if not worse:
        return ()
    named = [join((name_of(one.vc), f" by {duration(one.mean_seconds)}")) for one in worse]
    shown = [part for one in named[:_MOST_NAMED] for part in (one, ", ")][:-1]
    if len(named) > _MOST_NAMED:
        shown.append(join((f" and {counted(len(named) - _MOST_NAMED, 'other')}",)))
    waits = f"{counted(len(worse), 'VC')} {'waits' if len(worse) == 1 else 'wait'}"
    return (join((waits, " longer than alone with the promised cells: ", *shown, ".")),)


def _strong(value: str) -> Markup:
    return tag("b", value)
