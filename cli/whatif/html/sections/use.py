"""Use of the cluster over time, before and after: in all, what waited, and by VC."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, name_of, tag
from cli.whatif.html.frame.tables import Column, Content, table, unfold
from cli.whatif.html.frame.units import NOTHING, Direction, figure, moment
from cli.whatif.html.pictures.lines import Steps, line_key, line_picture
from cli.whatif.html.sections.pairs import pair
from cli.whatif.html.sections.rows import UNNAMED
from timemachine.comparison import Comparison, Side, UsePoint

_HEIGHT: Final = 250
_SMALL: Final = 120
_MOST_VCS: Final = 12
_TABLE_POINTS: Final = 48
_OTHERS: Final = "others"


def format_use(comparison: Comparison) -> Markup:
    """Show leaf cells in use, leaf cells that are waited for, and use by VC."""
    before, after = comparison.before, comparison.after
    if not before.use and not after.use:
        return tag("p", "No use was recorded.")
    used = _both(comparison, lambda point: point.used)
    waiting = _both(comparison, lambda point: point.waiting)
    return join(
        (
            _legend(comparison),
            _figure("Leaf cells in use", used, limits=_limits(comparison, used)),
            _figure("Leaf cells that waiting gangs ask for", waiting),
            _by_vc(comparison),
            unfold("Use over time in numbers", _numbers(used, waiting)),
        )
    )


def _figure(title: str, lines: Sequence[Steps], *, limits: Sequence[Steps] = ()) -> Markup:
    before, after = (one.mean for one in lines)
    told = f"{title} over time: on average {figure(before)} before, {figure(after)} after."
    picture = line_picture((*limits, *lines), told=told, height=_HEIGHT)
    averages = pair(figure(before), figure(after), kind=Direction.SAME)
    caption = tag("figcaption", tag("b", title), ", on average ", averages)
    return tag("figure", caption, picture)


def _by_vc(comparison: Comparison) -> Markup:
    """Draw one small picture for each VC, the largest first."""
    lines = {name: _vc_lines(comparison, name) for name in _vcs(comparison)}
    largest = sorted(lines, key=lambda name: (-sum(one.mean for one in lines[name]), name))
    if not largest:
        return Markup("")
    shown = largest if len(largest) <= _MOST_VCS else largest[: _MOST_VCS - 1]
    pictures = [_small(name_of(name or UNNAMED), name or UNNAMED, lines[name]) for name in shown]
    if rest := largest[len(shown) :]:
        title = f"{len(rest):,} {_OTHERS}"
        total = _both(comparison, lambda point: sum(point.by_vc.get(name, 0.0) for name in rest))
        pictures.append(_small(title, title, total))
    explained = "Leaf cells in use; each picture has a scale of its own."
    return join((tag("h3", "By VC"), tag("p", explained), tag("div", *pictures, class_="grid")))


def _small(title: str, name: str, lines: Sequence[Steps]) -> Markup:
    before, after = (one.mean for one in lines)
    told = f"Use by {name} over time: on average {figure(before)} before, {figure(after)} after."
    averages = tag("span", pair(figure(before), figure(after), kind=Direction.SAME))
    caption = tag("figcaption", tag("b", title), " ", averages)
    picture = line_picture(lines, told=told, height=_SMALL, moments=4, levels=3)
    return tag("figure", caption, picture, class_="small")


def _vcs(comparison: Comparison) -> Mapping[str, None]:
    points = (*comparison.before.use, *comparison.after.use)
    return dict.fromkeys(name for point in points for name in point.by_vc)


def _vc_lines(comparison: Comparison, name: str) -> Sequence[Steps]:
    return _both(comparison, lambda point: point.by_vc.get(name, 0.0))


def _both(comparison: Comparison, value: Callable[[UsePoint], float]) -> tuple[Steps, Steps]:
    return (
        _steps("before", comparison.before, value, comparison.end),
        _steps("after", comparison.after, value, comparison.end),
    )


def _steps(kind: str, side: Side, value: Callable[[UsePoint], float], end: float) -> Steps:
    begins = [point.at for point in side.use]
    if len(begins) > 1:
        end = 2 * begins[-1] - begins[-2]
    return Steps(kind, begins, [value(point) for point in side.use], end)


def _limits(comparison: Comparison, lines: Sequence[Steps]) -> list[Steps]:
    """Draw the size of the cluster: once, or for each side if they differ."""
    begin = min(one.begins[0] for one in lines if one.begins)
    end = max(one.end for one in lines if one.begins)
    sizes = dict.fromkeys((comparison.before.leaf_cells, comparison.after.leaf_cells))
    kinds = ("limit", "limit after") if len(sizes) > 1 else ("limit",)
    return [
        Steps(kind, [begin], [float(size)], end) for kind, size in zip(kinds, sizes, strict=True)
    ]


def _numbers(used: Sequence[Steps], waiting: Sequence[Steps]) -> Markup:
    columns = [
        Column("From (UTC)", "name"),
        *(Column(head, "number") for head in ("In use", "Waited for")),
    ]
    thin = [[one.thinned(_TABLE_POINTS) for one in lines] for lines in (used, waiting)]
    values = [[dict(zip(one.begins, one.values, strict=True)) for one in pair] for pair in thin]
    moments = sorted({at for pair in values for one in pair for at in one})
    rows: list[list[Content]] = [
        [moment(at), *(_pair_at(one, at) for one in values)] for at in moments
    ]
    return table("use-numbers", "Use over time, before → after", columns, rows)


def _pair_at(values: Sequence[Mapping[float, float]], at: float) -> Markup:
    shown = [figure(one[at]) if at in one else NOTHING for one in values]
    return pair(shown[0], shown[1], kind=Direction.SAME)


def _title(kind: str, side: Side) -> Markup:
    return join((kind, *((": ", tag("bdi", side.title)) if side.title != kind else ())))


def _legend(comparison: Comparison) -> Markup:
    before, after = comparison.before, comparison.after
    differ = before.leaf_cells != after.leaf_cells
    entries = [
        ("before", _title("before", before)),
        ("after", _title("after", after)),
        ("limit", join(("leaf cells of the cluster", ", before" if differ else ""))),
    ]
    if differ:
        entries.append(("limit after", join(("after",))))
    told = (tag("span", line_key(kind), tag("span", what)) for kind, what in entries)
    return tag("p", *told, class_="legend")
