"""A value before and after as two marks and the line between them, on the axis of a column.

Round marks are means, rhombs are what 95 of 100 stay below; hollow is before, filled is after.
"""

import math
from collections.abc import Sequence
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, percent, tag
from cli.whatif.html.frame.units import Direction, direction, duration
from cli.whatif.html.pictures.scales import Scale

_MARGIN: Final = 0.04
"""Free at both ends of the axis, so that marks are not cut."""
_ROUND: Final = "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z"
_RHOMB: Final = "M-5.5 0L0-5.5L5.5 0L0 5.5z"
_OFFSETS: Final = ((), (0,), (-7, 7))
"""How far from the middle of the row each pair lies."""


def place(scale: Scale, value: float) -> float:
    """Return where a value lies in a picture, from 0 to 1."""
    return _MARGIN + scale.place(value) * (1 - 2 * _MARGIN)


def axis(scale: Scale) -> Markup:
    """Draw the marks of the axis with their values, for the head of the column."""
    texts = [
        tag(
            "text",
            duration(tick),
            x=percent(place(scale, tick)),
            y="13",
            class_=_anchor(scale, tick),
        )
        for tick in scale.ticks
    ]
    return tag("svg", *texts, class_="axis", height="18", aria_hidden="true")


def dumbbells(scale: Scale, pairs: Sequence[tuple[float | None, float | None]]) -> Markup:
    """Draw one or two pairs of values below each other: the first round, the second rhombs.

    The numbers stand in the same row of the table, so programs that read aloud skip the picture.
    """
    shapes = zip(pairs, (_ROUND, _RHOMB), strict=False)
    known = [(pair, shape) for pair, shape in shapes if any(_is_known(value) for value in pair)]
    lines = join(_gridline(scale, tick) for tick in scale.ticks)
    drawn = [
        _pair(scale, pair, shape=shape, y=str(offset))
        for (pair, shape), offset in zip(known, _OFFSETS[len(known)], strict=True)
    ]
    middle = tag("svg", *drawn, y="50%")
    return tag("svg", lines, middle, class_="track", aria_hidden="true")


def legend_mark(*, is_round: bool, kind: str) -> Markup:
    """Draw one mark for a legend."""
    mark = tag("path", d=_ROUND if is_round else _RHOMB, class_=f"mark {kind}")
    return tag("svg", mark, class_="key", viewBox="-7 -7 14 14", aria_hidden="true")


def _pair(scale: Scale, pair: tuple[float | None, float | None], *, shape: str, y: str) -> Markup:
    before, after = pair
    kind = Direction.SAME
    parts: list[Markup] = []
    if before is not None and after is not None and _is_known(before) and _is_known(after):
        kind = direction(before, after)
        ends = percent(place(scale, before)), percent(place(scale, after))
        parts.append(tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_=f"link {kind}"))
    for value, mark in ((before, "before"), (after, f"after {kind}")):
        if value is not None and _is_known(value):
            x = percent(place(scale, value))
            path = tag("path", d=shape, class_=f"mark {mark}")
            parts.append(tag("svg", path, x=x, y=y))
    return join(parts)


def _gridline(scale: Scale, tick: float) -> Markup:
    x = percent(place(scale, tick))
    return tag("line", x1=x, x2=x, y1="0", y2="100%", class_="grid")


def _anchor(scale: Scale, tick: float) -> str:
    """Set texts near the ends of an axis inwards."""
    where = scale.place(tick)
    return "first" if where < 0.04 else "last" if where > 0.93 else "middle"


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
