"""The answer to a capacity question, as one HTML file: how many nodes bring a wait below a goal."""

from collections.abc import Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, tag
from cli.whatif.html.frame.page import Section, format_page
from cli.whatif.html.frame.tables import Cell, Column, Content, table
from cli.whatif.html.frame.units import counted, duration, share
from cli.whatif.html.pictures.dumbbells import legend_mark
from cli.whatif.html.pictures.lines import line_key
from cli.whatif.html.pictures.points import Axis, Frame, Point, point_picture
from cli.whatif.html.pictures.scales import count_scale, wait_scale
from timemachine.capacity import CapacityAnswer, CapacityStep, Goal, Measure
from timemachine.comparison import Grouping

_HEIGHT: Final = 300
_MEASURES: Final = {
    Measure.MEAN: "mean wait",
    Measure.MEDIAN: "median wait",
    Measure.P95: "p95 wait",
    Measure.LONGEST: "longest wait",
}
_EXPLAINED: Final = (
    "Each point is one play of the same gangs. More nodes make nearly all waits shorter, but not "
    "every single one; a number is enough if all larger numbers that were tried meet the goal, "
    "too."
)


def format_capacity_html(answer: CapacityAnswer) -> str:
    """Build the report. Equal answers give equal bytes."""
    unknown = tag("ul", *(tag("li", tag("bdi", line)) for line in answer.unknown))
    return format_page(
        title="Cellgate capacity",
        headline=_headline(answer),
        subtitle=tag("p", "Arrivals: ", tag("bdi", answer.source), ".", class_="span"),
        sections=(
            Section("waits", "Waits with more nodes", _waits(answer)),
            Section(
                "unknown",
                "What a simulation cannot know",
                unknown if answer.unknown else Markup(""),
            ),
        ),
    )


def _headline(answer: CapacityAnswer) -> str:
    goal = f"a {_subject(answer.goal)} of at most {duration(answer.goal.seconds)}"
    nodes = f"more {answer.node}"
    if answer.enough is None:
        return f"{answer.most:,} {nodes} are not enough for {goal}."
    if answer.enough == 0:
        return f"No {nodes} are needed for {goal}."
    verb = "is" if answer.enough == 1 else "are"
    return f"{answer.enough:,} {nodes} {verb} enough for {goal}."


def _subject(goal: Goal) -> str:
    measure = _MEASURES[goal.measure]
    if goal.grouping is None:
        return measure
    by = "VC" if goal.grouping is Grouping.VC else str(goal.grouping)
    return f"{measure} in {by} {goal.name}"


def _waits(answer: CapacityAnswer) -> Markup:
    if not answer.steps:
        return tag("p", "No number of nodes was tried.")
    return join((tag("p", _EXPLAINED), _legend(answer), _figure(answer), _table(answer)))


def _figure(answer: CapacityAnswer) -> Markup:
    goal = answer.goal
    points = [_point(answer, step) for step in answer.steps]
    nodes = count_scale(max(step.nodes for step in answer.steps))
    waits = wait_scale((goal.seconds, *(step.seconds for step in answer.steps)))
    frame = Frame(x=Axis(nodes, _number), y=Axis(waits, duration), height=_HEIGHT)
    told = f"The {_subject(goal)} against added nodes: " + ", ".join(one.told for one in points)
    picture = point_picture(frame, points, told=f"{told}.", path=points, level=goal.seconds)
    title = _subject(goal)
    caption = tag("figcaption", tag("b", title[:1].upper(), title[1:]), ", by nodes added")
    return tag("figure", caption, picture)


def _point(answer: CapacityAnswer, step: CapacityStep) -> Point:
    kind = "less" if _is_enough(answer, step) else "before"
    told = f"{counted(step.nodes, 'node')}: {duration(step.seconds)}"
    return Point(float(step.nodes), step.seconds, kind, told)


def _is_enough(answer: CapacityAnswer, step: CapacityStep) -> bool:
    return answer.enough is not None and step.nodes >= answer.enough


def _table(answer: CapacityAnswer) -> Markup:
    columns = (
        Column("Nodes added", "name"),
        Column("Leaf cells added", "number"),
        Column(_MEASURES[answer.goal.measure].capitalize(), "number"),
        Column("Goal", "number"),
        Column("Mean wait of all gangs", "number"),
        Column("Never started", "number"),
        Column("Utilisation", "number"),
    )
    title = "What each number of nodes led to"
    rows = [_cells(answer, step) for step in answer.steps]
    return join((tag("h3", title), table("steps", title, columns, rows)))


def _cells(answer: CapacityAnswer, step: CapacityStep) -> Sequence[Content]:
    met = Cell("met", "less") if step.is_met else Cell("missed", "was")
    return (
        f"{step.nodes:,}",
        f"{step.nodes * answer.leaf_cells_each:,}",
        tag("b", duration(step.seconds)) if step.nodes == answer.enough else duration(step.seconds),
        met,
        duration(step.all.mean),
        f"{step.all.never_started:,}",
        share(step.utilisation),
    )


def _legend(answer: CapacityAnswer) -> Markup:
    entries = [
        (legend_mark(is_round=True, kind="before"), "not enough"),
        (legend_mark(is_round=True, kind="less"), "enough"),
        (line_key("goal"), f"the goal, {duration(answer.goal.seconds)}"),
    ]
    return tag("p", *(tag("span", mark, told) for mark, told in entries), class_="legend")


def _number(value: float) -> str:
    return f"{value:,.0f}"
