"""Waits by VC, group, class and size: a table each, with a picture in every row."""

from collections.abc import Callable, Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Column, Content, table, unfold
from cli.whatif.html.pictures.dumbbells import axis, dumbbells, legend_mark
from cli.whatif.html.pictures.scales import Scale, wait_scale
from cli.whatif.html.sections.pairs import count_pair, wait_pair
from cli.whatif.html.sections.rows import UNNAMED, Row, most_important, telling_rows, title_of
from timemachine.comparison import Comparison, Grouping, Waits

_FIRST: Final = {
    Grouping.VC: "VC",
    Grouping.GROUP: "Group",
    Grouping.CLASS: "Class",
    Grouping.SIZE: "Leaf cells",
}
_EXPLAINED: Final = (
    "How long gangs wait for their first start. A gang that still waited at the end counts with "
    "its wait until then, and one that can never start does not count. The axis is the same in "
    "all tables below."
)


def format_waits(comparison: Comparison) -> Markup:
    """Show the waits of all gangs, and by each grouping."""
    tables = {grouping: telling_rows(comparison, grouping) for grouping in Grouping}
    everything = Row("all gangs", comparison.before.all, comparison.after.all)
    if not any(tables.values()):
        return tag("p", "No gang was admitted.")
    scale = wait_scale(_seconds([everything, *(row for rows in tables.values() for row in rows)]))
    return join(
        (
            tag("p", _EXPLAINED),
            _legend(),
            *(
                _format_grouping(grouping, rows, everything, scale)
                for grouping, rows in tables.items()
                if rows
            ),
        )
    )


def _format_grouping(
    grouping: Grouping, rows: Sequence[Row], everything: Row, scale: Scale
) -> Markup:
    shown = most_important(rows)
    title = f"By {title_of(grouping)}"
    caption = f"Waits by {title_of(grouping)}, before → after"
    drawn = [_cells(row, scale) for row in (everything, *shown)]
    every = f"All figures by {title_of(grouping)}, before → after"
    columns, cells = _all_columns(grouping), [_all_cells(row) for row in (everything, *rows)]
    return join(
        (
            tag("h3", title),
            table(f"waits-{grouping}", caption, _columns(grouping, axis(scale)), drawn),
            unfold(every, table(f"waits-{grouping}-all", every, columns, cells)),
        )
    )


def _columns(grouping: Grouping, picture: Markup) -> list[Column]:
    return [
        Column(_FIRST[grouping], "name"),
        Column(join((tag("span", "Picture", class_="unseen"), picture)), "picture"),
        Column("Mean", "number"),
        Column("95 of 100 within", "number"),
        Column("Gangs", "number"),
    ]


def _all_columns(grouping: Grouping) -> list[Column]:
    heads = ("Gangs", "Mean", "Half within", "95 of 100 within", "Longest", "Never started")
    return [Column(_FIRST[grouping], "name"), *(Column(head, "number") for head in heads)]


def _cells(row: Row, scale: Scale) -> list[Content]:
    return [
        row.name if row.others else name_of(row.name or UNNAMED),
        dumbbells(scale, _pairs(row)),
        *_waits(row, _mean, _p95),
        count_pair(_of(row.before, _gangs), _of(row.after, _gangs)),
    ]


def _all_cells(row: Row) -> list[Content]:
    return [
        name_of(row.name or UNNAMED),
        count_pair(_of(row.before, _gangs), _of(row.after, _gangs)),
        *_waits(row, _mean, _median, _p95, _longest),
        count_pair(_of(row.before, _never), _of(row.after, _never), is_less_better=True),
    ]


def _waits(row: Row, *gets: Callable[[Waits], float]) -> list[Markup]:
    return [wait_pair(_of(row.before, get), _of(row.after, get)) for get in gets]


def _pairs(row: Row) -> list[tuple[float | None, float | None]]:
    return [(_of(row.before, get), _of(row.after, get)) for get in (_mean, _p95)]


def _of(waits: Waits | None, get: Callable[[Waits], float]) -> float | None:
    return None if waits is None or not waits.gangs else get(waits)


def _seconds(rows: Sequence[Row]) -> list[float]:
    pairs = [pair for row in rows for pair in _pairs(row)]
    return [value for pair in pairs for value in pair if value is not None]


def _mean(waits: Waits) -> float:
    return waits.mean


def _p95(waits: Waits) -> float:
    return waits.p95


def _median(waits: Waits) -> float:
    return waits.median


def _longest(waits: Waits) -> float:
    return waits.longest


def _gangs(waits: Waits) -> float:
    return waits.gangs


def _never(waits: Waits) -> float:
    return waits.never_started


def _legend() -> Markup:
    entries = (
        (legend_mark(is_round=True, kind="before"), "mean before"),
        (legend_mark(is_round=True, kind="after less"), "mean after, if less"),
        (legend_mark(is_round=True, kind="after more"), "if more"),
        (legend_mark(is_round=False, kind="before"), "95 of 100 start within this, before"),
        (legend_mark(is_round=False, kind="after less"), "after, if less"),
        (legend_mark(is_round=False, kind="after more"), "if more"),
    )
    return tag("p", *(tag("span", mark, told) for mark, told in entries), class_="legend")
