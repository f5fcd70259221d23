"""Which VCs and groups gain and lose waiting, and how much in all."""

from collections.abc import Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Column, Content, table
from cli.whatif.html.frame.units import Direction, duration
from cli.whatif.html.pictures.bars import bar, bar_axis
from cli.whatif.html.pictures.scales import balance_scale
from cli.whatif.html.sections.pairs import wait_pair
from cli.whatif.html.sections.rows import UNNAMED, Row, telling_rows, title_of
from timemachine.comparison import Comparison, Grouping

_MOST_EACH: Final = 8
_LEAST_SECONDS: Final = 60.0
_EXPLAINED: Final = (
    "The change of the mean wait, times the number of gangs that were admitted on both sides. "
    "A bar to the left is waiting that is saved, to the right waiting that is added."
)


def format_impact(comparison: Comparison) -> Markup:
    """Show who saves and who adds waiting, by VC and by group."""
    parts = [
        _format_grouping(grouping, telling_rows(comparison, grouping))
        for grouping in (Grouping.VC, Grouping.GROUP)
    ]
    return join((tag("p", _EXPLAINED), *parts)) if any(parts) else Markup("")


def _format_grouping(grouping: Grouping, rows: Sequence[Row]) -> Markup:
    changed = sorted(
        (row for row in rows if abs(row.impact) >= _LEAST_SECONDS),
        key=lambda row: (row.impact, row.name),
    )
    if not changed:
        return Markup("")
    gains = [row for row in changed if row.impact < 0]
    losses = [row for row in changed if row.impact > 0]
    shown = (*gains[:_MOST_EACH], *losses[-_MOST_EACH:])
    scale = balance_scale(min(shown[0].impact, 0.0), max(shown[-1].impact, 0.0))
    title = title_of(grouping)
    columns = (
        Column("VC" if grouping is Grouping.VC else "Group", "name"),
        Column(join((tag("span", "Picture", class_="unseen"), bar_axis(scale))), "picture"),
        Column("In all", "number"),
        Column("Gangs", "number"),
        Column("Mean wait", "number"),
    )
    caption = f"Waiting saved and added, by {title}"
    cells = [_cells(row, bar(scale, row.impact)) for row in shown]
    drawn = table(f"impact-{grouping}", caption, columns, cells)
    return join((tag("h3", f"By {title}"), drawn, _left_out(rows, shown)))


def _cells(row: Row, picture: Markup) -> list[Content]:
    kind = Direction.LESS if row.impact < 0 else Direction.MORE
    sign = "" if row.impact < 0 else "+"
    assert row.before is not None
    assert row.after is not None
    return [
        name_of(row.name or UNNAMED),
        picture,
        tag("b", f"{sign}{duration(row.impact)}", class_=kind),
        f"{row.gangs:,}",
        wait_pair(row.before.mean, row.after.mean),
    ]


def _left_out(rows: Sequence[Row], shown: Sequence[Row]) -> Markup:
    rest = [row for row in rows if row not in shown]
    if not rest:
        return Markup("")
    total = sum(row.impact for row in rest)
    told = f"Not shown: {len(rest):,} with less effect, together {duration(total)}."
    return tag("p", told, class_="note")
