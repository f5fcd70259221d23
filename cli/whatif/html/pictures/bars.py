"""Gains and losses as bars to both sides of a middle line, one in each row of a table."""

from typing import Final

from cli.whatif.html.frame.markup import Markup, percent, tag
from cli.whatif.html.frame.units import Direction, duration
from cli.whatif.html.pictures.scales import Scale

_MARGIN: Final = 0.02


def bar(scale: Scale, value: float) -> Markup:
    """Draw one bar: to the left for less waiting, to the right for more."""
    middle, end = _place(scale, 0.0), _place(scale, value)
    kind = Direction.LESS if value < 0 else Direction.MORE
    return tag(
        "svg",
        tag(
            "rect",
            x=percent(min(middle, end)),
            y="22%",
            width=percent(abs(end - middle)),
            height="56%",
            rx="2",
            class_=f"bar {kind}",
        ),
        tag("line", x1=percent(middle), x2=percent(middle), y1="0", y2="100%", class_="base"),
        class_="track",
        aria_hidden="true",
    )


def bar_axis(scale: Scale) -> Markup:
    """Write the ends and the zero of the axis, for the head of the column."""
    texts = [
        tag("text", duration(tick), x=percent(_place(scale, tick)), y="13", class_=_anchor(tick))
        for tick in scale.ticks
    ]
    return tag("svg", *texts, class_="axis", height="18", aria_hidden="true")


def _anchor(tick: float) -> str:
    return "middle" if tick == 0 else "first" if tick < 0 else "last"


def _place(scale: Scale, value: float) -> float:
    return _MARGIN + scale.place(value) * (1 - 2 * _MARGIN)
