"""Values over time as steps: one line before, one after, and where there is one, a limit.

The lines lie in a picture of 1000 by 1000 units that is stretched; texts and marks lie around it
and keep their size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, number, percent, tag
from cli.whatif.html.frame.units import figure, tick_moment
from cli.whatif.html.pictures.scales import Scale, count_scale, moment_ticks

MOST_POINTS: Final = 240
_UNITS: Final = 1000
_TEXT_HEIGHT: Final = 22
_LATE: Final = 0.95
"""Texts beyond this part of the axis are set inwards, and may touch the one before."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Averages over stretches of time: each lasts until the next begins, the last until `end`."""

    kind: str
    """A class of the style sheet: `before`, `after`, `limit before` or `limit after`."""
    begins: Sequence[float]
    values: Sequence[float]
    end: float

    @property
    def mean(self) -> float:
        """The average over the whole time."""
        spans = self._spans()
        total = sum(spans)
        weighed = sum(value * span for value, span in zip(self.values, spans, strict=True))
        return weighed / total if total > 0 else 0.0

    def _spans(self) -> list[float]:
        ends = [*self.begins, self.end][1:]
        return [max(end - begin, 0.0) for begin, end in zip(self.begins, ends, strict=True)]

    def thinned(self, most: int = MOST_POINTS) -> "Steps":
        """Average neighbours until there are few enough points for a picture."""
        many = math.ceil(len(self.begins) / most)
        if many <= 1:
            return self
        starts = range(0, len(self.begins), many)
        parts = [
            Steps(
                self.kind,
                self.begins[i : i + many],
                self.values[i : i + many],
                self.begins[i + many] if i + many < len(self.begins) else self.end,
            )
            for i in starts
        ]
        return Steps(
            self.kind, [self.begins[i] for i in starts], [one.mean for one in parts], self.end
        )


def line_picture(
    lines: Sequence[Steps], *, told: str, height: int, moments: int = 8, levels: int = 5
) -> Markup:
    """Draw lines over time on one axis; `told` says in words what they show."""
    known = [one.thinned() for one in lines if one.begins]
    begin = min((one.begins[0] for one in known), default=0.0)
    end = max((one.end for one in known), default=0.0)
    if end <= begin:
        end = begin + 1.0
    most = max((value for one in known for value in one.values), default=0.0)
    counts = count_scale(most, ticks=levels)
    plot = height - _TEXT_HEIGHT
    picture = tag(
        "svg",
        *(_level(counts, tick, plot) for tick in counts.ticks),
        *_moments(begin, end, plot, most=moments),
        tag(
            "svg",
            *(_line(one, counts, begin=begin, end=end) for one in known),
            viewBox=f"0 0 {_UNITS} {_UNITS}",
            preserveAspectRatio="none",
            y="0",
            width="100%",
            height=str(plot),
        ),
        class_="lines",
        height=str(height),
        role="img",
        aria_label=told,
    )
    texts = (_level_text(counts, tick, plot) for tick in counts.ticks)
    axis = tag("svg", *texts, class_="levels", height=str(height), aria_hidden="true")
    return tag("div", axis, picture, class_="chart")


def line_key(kind: str) -> Markup:
    """Draw a piece of a line for a legend."""
    line = tag("line", x1="0", x2="22", y1="7", y2="7", class_=f"line {kind}")
    return tag("svg", line, class_="key wide", viewBox="0 0 22 14", aria_hidden="true")


def _line(steps: Steps, counts: Scale, *, begin: float, end: float) -> Markup:
    def x(at: float) -> str:
        return number(_UNITS * (at - begin) / (end - begin))

    def y(value: float) -> str:
        return number(_UNITS * (1 - counts.place(value)))

    ends = [*steps.begins[1:], steps.end]
    path = "".join(
        f"{'M' if index == 0 else 'L'}{x(start)} {y(value)}H{x(stop)}"
        for index, (start, stop, value) in enumerate(
            zip(steps.begins, ends, steps.values, strict=True)
        )
    )
    area = f"{path}V{_UNITS}H{x(steps.begins[0])}z"
    line = tag("path", d=path, class_=f"line {steps.kind}")
    return join((tag("path", d=area, class_="area"), line)) if steps.kind == "after" else line


def _level(counts: Scale, tick: float, plot: int) -> Markup:
    y = number(plot * (1 - counts.place(tick)))
    return tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid" if tick else "base")


def _level_text(counts: Scale, tick: float, plot: int) -> Markup:
    y = plot * (1 - counts.place(tick))
    return tag("text", figure(tick), x="100%", y=number(y + 4), class_="last")


def _moments(begin: float, end: float, plot: int, *, most: int) -> list[Markup]:
    """Mark round moments below the axis; on a phone every second one has no text."""
    found = moment_ticks(begin, end, most=most)
    places = [(at - begin) / (end - begin) for at in found.ticks]
    if len(places) > 1 and places[-1] > _LATE and places[-1] - places[-2] < 1.5 / most:
        places.pop()
    shown = [tick_moment(at, is_month=found.are_months) for at in found.ticks]
    return [
        _moment(text, where, plot, is_minor=bool(index % 2))
        for index, (text, where) in enumerate(zip(shown, places, strict=False))
    ]


def _moment(shown: str, where: float, plot: int, *, is_minor: bool) -> Markup:
    anchor = "first" if where < 1 - _LATE else "last" if where > _LATE else "middle"
    if is_minor:
        anchor += " minor"
    x = percent(where)
    line = tag("line", x1=x, x2=x, y1=str(plot), y2=str(plot + 4), class_="base")
    return join((line, tag("text", shown, x=x, y=str(plot + 18), class_=anchor)))
