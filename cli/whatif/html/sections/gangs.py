"""The gangs that gain and lose most, and what else happened to gangs."""

from collections.abc import Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Column, Content, long_table, table, unfold
from cli.whatif.html.frame.units import NOTHING, Direction, counted, direction, duration, moment
from cli.whatif.html.sections.rows import UNNAMED
from timemachine.comparison import ChangeKind, Comparison, GangChange

KIND_TITLES: Final = {
    ChangeKind.STARTS_EARLIER: "started earlier",
    ChangeKind.STARTS_LATER: "started later",
    ChangeKind.REFUSED: "refused only after the change",
    ChangeKind.ADMITTED: "refused only before the change",
    ChangeKind.LOWERED: "in a lower class",
    ChangeKind.RAISED: "in a higher class",
    ChangeKind.PREEMPTED: "preempted only after the change",
    ChangeKind.NOT_PREEMPTED: "preempted only before the change",
    ChangeKind.PLACED_ELSEWHERE: "placed on other nodes",
}
"""What is said of gangs that fared differently, in the order in which it is said."""
_NO_START: Final = (ChangeKind.REFUSED, ChangeKind.ADMITTED)


def format_gains(comparison: Comparison) -> Markup:
    """Show the gangs that gain most and those that lose most."""
    parts = (
        ("gains", "The gangs that gain most", "No gang gains.", comparison.gains),
        ("losses", "The gangs that lose most", "No gang loses.", comparison.losses),
    )
    return join(
        join((tag("h3", title), _changes(key, title, gangs) if gangs else tag("p", none)))
        for key, title, none, gangs in parts
    )


def format_others(comparison: Comparison) -> Markup:
    """Show how many gangs fared differently in which way, and which."""
    counts = {kind: comparison.counts.get(kind, 0) for kind in KIND_TITLES}
    if not any(counts.values()) and not comparison.others:
        return tag("p", "Every gang fared the same.")
    columns = (Column("How", "name"), Column("Gangs", "number"))
    rows: list[list[Content]] = [
        [_sentence_case(KIND_TITLES[kind]), f"{count:,}"] for kind, count in counts.items()
    ]
    return join(
        (
            tag(
                "div",
                table("changes", "How gangs fared differently", columns, rows),
                class_="narrow",
            ),
            *(_of_kind(kind, comparison) for kind in KIND_TITLES),
        )
    )


def _of_kind(kind: ChangeKind, comparison: Comparison) -> Markup:
    gangs = [one for one in comparison.others if one.kind is kind]
    if not gangs:
        return Markup("")
    title = f"Gangs {KIND_TITLES[kind]}"
    count = max(comparison.counts.get(kind, 0), len(gangs))
    told = counted(count, "gang")
    if count > len(gangs):
        told += f", the first {len(gangs)} of them listed"
    return unfold(f"{title}: {told}", _changes(f"gangs-{kind}", title, gangs))


def _changes(key: str, caption: str, gangs: Sequence[GangChange]) -> Markup:
    columns = (
        Column("Gang", "name long"),
        Column("User, VC", "other"),
        Column("Leaf cells", "number"),
        Column("Submitted (UTC)", "number"),
        Column("Starts", "number"),
        Column("Before", "words"),
        Column("After", "words"),
    )
    return long_table(key, caption, columns, [_cells(gang) for gang in gangs])


def _cells(gang: GangChange) -> list[Content]:
    return [
        name_of(gang.gang or UNNAMED),
        join((name_of(gang.user or UNNAMED), ", ", name_of(gang.vc or UNNAMED))),
        f"{gang.leaf_cells:,}",
        moment(gang.submitted),
        _start(gang),
        tag("bdi", gang.before),
        tag("bdi", gang.after),
    ]


def _start(gang: GangChange) -> Markup:
    """Say when it starts, compared with before."""
    kind = direction(0.0, gang.seconds)
    if gang.kind in _NO_START:
        return tag("span", NOTHING, class_="was")
    if kind is Direction.SAME:
        return tag("span", "same", class_="was")
    word = "earlier" if kind is Direction.LESS else "later"
    return tag("b", f"{duration(abs(gang.seconds))} {word}", class_=kind)


def _sentence_case(title: str) -> str:
    return title[:1].upper() + title[1:]
