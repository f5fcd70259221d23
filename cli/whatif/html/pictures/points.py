"""Points on two axes, a line through some of them, and a level that they are compared with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, number, percent, tag
from cli.whatif.html.pictures.scales import Scale

_TEXT_HEIGHT: Final = 22
_TOP: Final = 12
"""Free above the highest value, so that marks are not cut."""
_MARGIN: Final = 0.03
_ROUND: Final = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"


Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """The scale of an axis, and how its values are written."""

    scale: Scale
    write: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Point:
    """One point; its kind is a class of the style sheet."""

    x: float
    y: float
    kind: str
    told: str
    """What is shown when a pointer rests on it."""
    across: Span | None = None
    """Between what its `x` may lie."""
    up: Span | None = None
    """Between what its `y` may lie."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where things of a picture lie."""

    x: Axis
    y: Axis
    height: int

    @property
    def plot(self) -> int:
        """The height without the texts below."""
        return self.height - _TEXT_HEIGHT

    def across(self, value: float) -> str:
        """Return how far from the left a value lies."""
        return percent(_MARGIN + self.x.scale.place(value) * (1 - 2 * _MARGIN))

    def down(self, value: float) -> str:
        """Return how far from the top a value lies."""
        return number(_TOP + (self.plot - _TOP) * (1 - self.y.scale.place(value)))


def point_picture(
    frame: Frame,
    points: Sequence[Point],
    *,
    told: str,
    path: Sequence[Point] = (),
    level: float | None = None,
) -> Markup:
    """Draw points; `path` are joined by lines, `level` is a value across the picture."""
    picture = tag(
        "svg",
        *(_gridline(frame, tick) for tick in frame.y.scale.ticks),
        *(_below(frame, tick) for tick in frame.x.scale.ticks),
        join(() if level is None else (_level(frame, level),)),
        *(_between(frame, one, other) for one, other in pairwise(path)),
        *(_spans(frame, one) for one in points),
        *(_point(frame, one) for one in points),
        class_="lines",
        height=str(frame.height),
        role="img",
        aria_label=told,
    )
    texts = (_beside(frame, tick) for tick in frame.y.scale.ticks)
    axis = tag("svg", *texts, class_="levels", height=str(frame.height), aria_hidden="true")
    return tag("div", axis, picture, class_="chart wide")


def _point(frame: Frame, point: Point) -> Markup:
    mark = tag("path", tag("title", point.told), d=_ROUND, class_=f"mark {point.kind}")
    return tag("svg", mark, x=frame.across(point.x), y=frame.down(point.y))


def _spans(frame: Frame, point: Point) -> Markup:
    """Draw between what a point may lie, as a cross behind it."""
    lines: list[Markup] = []
    if point.across is not None:
        ends = [frame.across(value) for value in point.across]
        y = frame.down(point.y)
        lines.append(tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_="line span"))
    if point.up is not None:
        ends = [frame.down(value) for value in point.up]
        x = frame.across(point.x)
        lines.append(tag("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_="line span"))
    return join(lines)


def _between(frame: Frame, one: Point, other: Point) -> Markup:
    return tag(
        "line",
        x1=frame.across(one.x),
        x2=frame.across(other.x),
        y1=frame.down(one.y),
        y2=frame.down(other.y),
        class_="line path",
    )


def _level(frame: Frame, value: float) -> Markup:
    y = frame.down(value)
    return tag("line", x1="0", x2="100%", y1=y, y2=y, class_="line goal")


def _gridline(frame: Frame, tick: float) -> Markup:
    y = frame.down(tick)
    return tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid")


def _beside(frame: Frame, tick: float) -> Markup:
    y = number(float(frame.down(tick)) + 4)
    return tag("text", frame.y.write(tick), x="100%", y=y, class_="last")


def _below(frame: Frame, tick: float) -> Markup:
    x, y = frame.across(tick), str(frame.plot)
    line = tag("line", x1=x, x2=x, y1="0", y2=y, class_="grid")
    text = tag("text", frame.x.write(tick), x=x, y=str(frame.plot + 18), class_="middle")
    return join((line, text))
