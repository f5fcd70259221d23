"""Two values of one figure in a cell: `14 min → 9 min`, or one where nothing changed."""

from cli.whatif.html.frame.markup import Markup, join, tag
from cli.whatif.html.frame.units import NOTHING, Direction, direction, duration, share


def wait_pair(before: float | None, after: float | None) -> Markup:
    """Show two durations, of which less is better."""
    kind = Direction.SAME if before is None or after is None else direction(before, after)
    return pair(_shown(before), _shown(after), kind=kind)


def count_pair(
    before: float | None, after: float | None, *, is_less_better: bool | None = None
) -> Markup:
    """Show two numbers of things; `is_less_better` is None where neither is."""
    first, second = _count(before), _count(after)
    return pair(first, second, kind=judge(before or 0, after or 0, is_less_better=is_less_better))


def share_pair(before: float, after: float, *, is_less_better: bool | None) -> Markup:
    """Show two shares of 1."""
    kind = judge(before, after, is_less_better=is_less_better, least=0.0005)
    return pair(share(before), share(after), kind=kind)


def pair(before: str, after: str, *, kind: Direction) -> Markup:
    """Show two values, the second in the colour of what it means for people who wait."""
    if before == after:
        return tag("span", after, class_="was")
    return join((tag("span", before, class_="was"), " → ", tag("b", after, class_=kind)))


def judge(
    before: float, after: float, *, is_less_better: bool | None, least: float = 0.5
) -> Direction:
    """Say how a change is coloured: as `less` waiting if it is better, as `more` if it is worse."""
    kind = direction(before, after, least=least)
    if is_less_better is None or kind is Direction.SAME:
        return Direction.SAME
    return Direction.LESS if (kind is Direction.LESS) == is_less_better else Direction.MORE


def _shown(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration(seconds)


def _count(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"
