"""What is searched: fields of the Queues document and their ranges.

    worth.shortRun=0..192h            in every level, each on its own
    worth.shortRun@batch=0..192h      in the level `batch`
    promoteAfter@batch=12h..14d
    runTime.cap=1h..7d                other fields: `FIELDS`

Durations are sampled on a logarithmic scale, since 10 minutes and 20 differ as much as 50 hours and
100; where the range begins at 0, a part of the samples is 0. They are rounded to what a person
would write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from typing import Final

from policy.documents.yaml_tree import Plain
from policy.queues.durations import HOUR, MINUTE, parse_duration
from policy.queues.factors import FactorName
from policy.wording import join_path, listing, quote

DEFAULT_SEARCH: Final = (
    "worth.fairShare=0..192h",
    "worth.shortRun=0..384h",
    "worth.smallGang=0..192h",
    "worth.asked=0..192h",
)
"""What is searched unless the admin says otherwise.

It leaves out what says how important a gang is, which no history can answer: the worth of `class`,
`userLevel`, `groupLevel` and `startBy`.
"""
_WORTH: Final = "worth."
_PROMOTE: Final = "promoteAfter"
_AT_ZERO: Final = 0.15
"""Which part of the samples is 0 where the range begins there."""
_LEAST_PART: Final = 1 / 256
"""The least other sample there, as part of the greatest."""


class Scale(StrEnum):
    """How values of a field are sampled and written."""

    DURATION = "duration"
    COUNT = "count"
    NUMBER = "number"


FIELDS: Final[Mapping[str, tuple[Scale, tuple[str, ...]]]] = {
    "runTime.cap": (Scale.DURATION, ("runTime", "cap")),
    "fairShare.halfLife": (Scale.DURATION, ("fairShare", "halfLife")),
    "reservation.after": (Scale.DURATION, ("reservation", "after")),
    "reservation.perPool": (Scale.COUNT, ("reservation", "perPool")),
    "reservation.backfillQuantile": (Scale.NUMBER, ("reservation", "backfillQuantile")),
}
"""Fields outside of levels: how they are sampled, and where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A field that is searched, and its range."""

    name: str
    """As in `--allow`: `worth.shortRun`, with the level if there are several."""
    keys: tuple[str | int, ...]
    """Where it is in the document."""
    scale: Scale
    low: float
    high: float

    @property
    def path(self) -> str:
        """Where it is in the document, for messages."""
        return join_path(self.keys)

    @property
    def factor(self) -> FactorName | None:
        """The factor whose worth it is."""
        return FactorName(str(self.keys[-1])) if "worth" in self.keys else None

    @property
    def level(self) -> int | None:
        """The place of the level that it belongs to."""
        return int(self.keys[1]) if self.keys[0] == "levels" else None

    def value_at(self, share: float) -> float:
        """Return the value at a part of the range, from 0 to 1."""
        if self.scale is not Scale.DURATION:
            exact = self.low + share * (self.high - self.low)
            digits = 0 if self.scale is Scale.COUNT else 2
            return self.clip(round(exact, digits))
        low = self.low
        if not low:
            if share < _AT_ZERO:
                return 0.0
            share, low = (share - _AT_ZERO) / (1 - _AT_ZERO), self.high * _LEAST_PART
        exact = exp(log(low) + share * (log(self.high) - log(low)))
        return self.clip(_rounded(exact))

    def clip(self, value: float) -> float:
        """Return the nearest value within the range."""
        return min(self.high, max(self.low, value))

    def write(self, value: float) -> Plain:
        """Return a value as documents have it."""
        if self.scale is Scale.DURATION:
            return write_duration(value)
        return int(value) if self.scale is Scale.COUNT else value

    def __str__(self) -> str:
        return f"{self.name} {self.write(self.low)} to {self.write(self.high)}"


def _rounded(seconds: float) -> float:
    steps = (
        (10 * MINUTE, MINUTE),
        (2 * HOUR, 5 * MINUTE),
        (10 * HOUR, 30 * MINUTE),
        (48 * HOUR, HOUR),
    )
    step = next((step for below, step in steps if seconds < below), 6 * HOUR)
    return max(step, round(seconds / step) * step)


def write_duration(seconds: float) -> str:
    """Write a duration as documents have it: `36h`, `1h30m`, `90s`, `0s`."""
    hours, rest = divmod(round(seconds), int(HOUR))
    minutes, left = divmod(rest, int(MINUTE))
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{one}{unit}" for one, unit in parts if one) or "0s"


def parse_search(texts: Sequence[str], *, levels: Sequence[str]) -> list[Parameter]:
    """Read what is searched, given the names of the levels. Raises ValueError in plain words.

    Of a field that is named twice the later range counts.
    """
    found: dict[str, Parameter] = {}
    for text in texts:
        for one in _parse(text, levels):
            found[one.name] = one
    return list(found.values())


def _parse(text: str, levels: Sequence[str]) -> Iterator[Parameter]:
    field, is_given, bounds = text.partition("=")
    low, is_range, high = bounds.partition("..")
    if not is_given or not is_range:
        raise ValueError(f"must be FIELD=LOW..HIGH, such as worth.shortRun=0..192h, not {text!r}")
    name, _, level = field.strip().partition("@")
    places = list(_places(name, level, levels))
    scale = FIELDS[name][0] if name in FIELDS else Scale.DURATION
    least, most = (_bound(one.strip(), scale, text) for one in (low, high))
    if least >= most:
        raise ValueError(f"{quote(text)}: the range must not be empty")
    if scale is Scale.DURATION and not least and not name.startswith(_WORTH):
        raise ValueError(f"{quote(text)}: only a worth may be 0")
    for keys, shown in places:
        yield Parameter(name=shown, keys=keys, scale=scale, low=least, high=most)


def _bound(text: str, scale: Scale, whole: str) -> float:
    try:
        if scale is Scale.COUNT:
            return float(int(text))
        if scale is Scale.NUMBER:
            return float(text)
        return 0.0 if text == "0" else parse_duration(text)
    except ValueError as exc:
        raise ValueError(f"{quote(whole)}: {quote(text)} is not a {scale}") from exc


def _places(
    name: str, level: str, levels: Sequence[str]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield where a field is, and under which name it is shown."""
    if name in FIELDS and not level:
        yield FIELDS[name][1], name
        return
    is_worth = name.startswith(_WORTH) and name.removeprefix(_WORTH) in list(FactorName)
    if not is_worth and name != _PROMOTE:
        known = listing([*(f"{_WORTH}{factor}" for factor in FactorName), _PROMOTE, *FIELDS])
        raise ValueError(f"{quote(name)} cannot be searched; what can be is {known}")
    if level and level not in levels:
        raise ValueError(f"there is no level {quote(level)}; the levels are {listing(levels)}")
    tail = ("worth", name.removeprefix(_WORTH)) if is_worth else (_PROMOTE,)
    for place, one in enumerate(levels):
        if level in ("", one) and (is_worth or place):
            yield ("levels", place, *tail), name if len(levels) == 1 else f"{name}@{one}"
