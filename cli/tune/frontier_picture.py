"""The documents on the training weeks: two objectives as axes, and the frontier as a line."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

from cli.tune.report import columns_of, document_text, objective_title
from cli.tune.result import Result
from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Column, Content, long_table
from cli.whatif.html.frame.units import counted, direction, duration
from cli.whatif.html.pictures.dumbbells import legend_mark
from cli.whatif.html.pictures.lines import line_key
from cli.whatif.html.pictures.points import Axis, Frame, Point, Span, point_picture
from cli.whatif.html.pictures.scales import wait_scale
from cli.whatif.html.sections.pairs import pair
from timemachine.tuning.candidates import CURRENT
from timemachine.tuning.criteria import Objective
from timemachine.tuning.training import Trained
from timemachine.tuning.verdict import Change

_HEIGHT: Final = 340
_EXPLAINED: Final = (
    "Each point is a document on the training weeks, on which it was chosen: these figures flatter "
    "it. On the frontier no other document is better in everything. A cross shows between what the "
    "figures of a document on the frontier may lie."
)


def format_training(result: Result) -> Markup:
    """Show how the documents fared that played most weeks of training."""
    if not result.training:
        return tag("p", "No document has played a whole week of training.")
    return join((tag("p", _EXPLAINED), _legend(), _figure(result), _table(result)))


def _figure(result: Result) -> Markup:
    across, up = _axes(result)
    large = result.asked.large
    titles = [objective_title(one, large) for one in (across, up)]
    points = [_point(one, across, up) for one in result.training]
    frame = Frame(
        x=Axis(wait_scale(one.x for one in points), duration),
        y=Axis(wait_scale(one.y for one in points), duration),
        height=_HEIGHT,
    )
    on_it = [
        one for one, known in zip(points, result.training, strict=True) if known.is_on_frontier
    ]
    path = sorted(on_it, key=lambda one: (one.x, -one.y))
    told = f"{titles[1]} against {titles[0]}: {'; '.join(one.told for one in points)}."
    caption = tag("figcaption", tag("b", titles[1]), " (upwards) by ", tag("b", titles[0]))
    return tag("figure", caption, point_picture(frame, points, told=told, path=path))


def _axes(result: Result) -> tuple[Objective, Objective]:
    """Choose the objective that decides, and the next one."""
    first, second, *_ = columns_of(result)
    return first, second


def _point(trained: Trained, across: Objective, up: Objective) -> Point:
    judged = trained.judged
    x, y = judged.changes[across], judged.changes[up]
    is_current = judged.candidate.name == CURRENT
    kind = "current" if is_current else "less" if trained.is_on_frontier else "before"
    has_spans = trained.is_on_frontier and not is_current
    return Point(
        x.after,
        y.after,
        kind,
        f"{judged.candidate.name} {duration(x.after)}, {duration(y.after)}",
        across=_span(x) if has_spans else None,
        up=_span(y) if has_spans else None,
    )


def _span(change: Change) -> Span | None:
    found = change.difference
    if not (isfinite(found.low) and isfinite(found.high)):
        return None
    return change.before + found.low, change.before + found.high


def _table(result: Result) -> Markup:
    large = result.asked.large
    columns = (
        Column("Document", "name"),
        Column("Frontier", "other"),
        *(Column(_capital(objective_title(one, large)), "number") for one in columns_of(result)),
        Column("Changes", "words"),
    )
    title = f"Documents on {counted(result.weeks, 'week')} of training"
    rows = [_cells(result, one) for one in result.training]
    return join((tag("h3", title), long_table("training", title, columns, rows)))


def _cells(result: Result, trained: Trained) -> Sequence[Content]:
    judged = trained.judged
    return (
        name_of(judged.candidate.name),
        "on it" if trained.is_on_frontier else "",
        *(waits(judged.changes[one]) for one in columns_of(result)),
        document_text(judged.candidate),
    )


def waits(change: Change) -> Markup:
    """Show an objective under the current document and under another one."""
    kind = direction(change.before, change.after)
    return pair(duration(change.before), duration(change.after), kind=kind)


def _legend() -> Markup:
    entries = (
        (legend_mark(is_round=True, kind="current"), "the current document"),
        (legend_mark(is_round=True, kind="less"), "on the frontier"),
        (legend_mark(is_round=True, kind="before"), "others"),
        (line_key("path"), "the frontier"),
    )
    return tag("p", *(tag("span", mark, told) for mark, told in entries), class_="legend")


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
