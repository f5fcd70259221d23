"""Comparisons of a number of leaf cells with a limit, as rules write them: `"> 4"`, `4`."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policy.wording import describe

_OPERATORS: Final[dict[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_TEXT: Final = re.compile(r"\s*(>=|<=|==|!=|=|<|>|)\s*(-?[0-9]{1,18})\s*")
_SPELLINGS: Final = {"": ">", "=": "=="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operator` with `limit`; equal however it was spelled."""

    operator: str
    limit: int

    def __str__(self) -> str:
        return f"{self.operator} {self.limit}"

    def holds(self, value: int) -> bool:
        """Whether the value compares like this with the limit."""
        return _OPERATORS[self.operator](value, self.limit)

    def unchanged_up_to(self, value: int) -> int | None:
        """Return how far the value can grow without a change of `holds`; None: without limit."""
        match self.operator:
            case ">" | "<=":
                last = self.limit
            case ">=" | "<":
                last = self.limit - 1
            case _:
                last = self.limit - (value < self.limit)
        return last if value <= last else None

    def excess(self, value: int) -> int | None:
        """Return how much smaller a value would have to be so that this no longer holds.

        None if a smaller value does not help, or would have to be negative.
        """
        if self.operator not in (">", ">=") or not self.holds(value):
            return None
        excess = value - self.limit + (self.operator == ">=")
        return excess if excess <= value else None


def parse_comparison(value: object) -> Comparison:
    """Read a comparison; a bare number means `>`. Raises ValueError in plain words."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Comparison(">", value)
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'must be a comparison such as "> 4" or 4, not {describe(value)}')
    sign, limit = match.groups()
    return Comparison(_SPELLINGS.get(sign, sign), int(limit))


def covers(wide: Comparison | None, narrow: Comparison | None) -> bool:
    """Prove that every number of leaf cells that fits `narrow` fits `wide`; None fits all."""
    if wide is None or wide == narrow:
        return True
    # Nothing changes between and beyond the limits, so the numbers next to them are enough.
    limits = (0, wide.limit, narrow.limit if narrow is not None else 0)
    points = [max(0, limit + step) for limit in limits for step in (-1, 0, 1)]
    return all(wide.holds(point) for point in points if narrow is None or narrow.holds(point))
