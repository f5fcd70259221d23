"""Days to train on, in weeks, and days to judge on: a later part of the history.

A stretch is played with some days before it, so that its first gangs do not meet an empty cluster,
and some after it, so that gangs that wait at its end still have competitors. Gangs of those days
are played and not counted. The days before the first judging day are training days; no document is
chosen by how it fares on judging days.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from policy.queues.durations import DAY
from timemachine.model import Arrival
from timemachine.tuning.chances import Chances

LEAST_DAYS: Final = 4
"""Two to train on, two to judge on."""
_WEEK: Final = 7
_LEAD: Final = 2
_TAIL: Final = 1
_IDLE: Final = 0.25
"""A week that asks for less than this part of what weeks ask for on average is idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some days in a row, and the days around them that are played, too."""

    first: int
    """Days since 1970."""
    last: int
    begin: float
    """From when arrivals are played, in seconds since 1970."""
    end: float

    @property
    def days(self) -> range:
        """The days that count."""
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What is trained on, and what is judged on."""

    training: Sequence[Stretch]
    """Weeks, in the order of time; the last may be longer."""
    judging: Stretch


def divide(first: int, last: int, *, judge_from: int) -> Division:
    """Divide days: those before `judge_from` into weeks, all others to judge on.

    Raises ValueError unless there are two days on each side.
    """
    if judge_from - first < LEAST_DAYS // 2 or last - judge_from + 1 < LEAST_DAYS // 2:
        raise ValueError("at least two days to train on and two to judge on are needed")
    days = judge_from - first
    # Several stretches even of a short history: halving needs more than one.
    length = min(_WEEK, max(1, days // 4))
    bounds = [*range(first, judge_from - length + 1, length), judge_from]
    training = [
        _stretch(begin, end - 1, first=first, last=judge_from - 1)
        for begin, end in pairwise(bounds)
    ]
    return Division(training=training, judging=_stretch(judge_from, last, first=first, last=last))


def _stretch(begin: int, end: int, *, first: int, last: int) -> Stretch:
    """Return a stretch with the days around it, as far as they lie between `first` and `last`."""
    return Stretch(
        first=begin,
        last=end,
        begin=max(first, begin - _LEAD) * DAY,
        end=(min(last, end + _TAIL) + 1) * DAY,
    )


def draw(
    weeks: Sequence[Stretch], arrivals: Sequence[Arrival], *, count: int, seed: int
) -> list[Stretch]:
    """Return so many of the weeks, in the order in which they are played.

    Which weeks is left to chance, apart from idle ones: where no gang waits, all documents are
    alike. The busiest is first, because the first week decides most.
    """
    demand = dict.fromkeys(weeks, 0.0)
    by_day = {day: week for week in weeks for day in week.days}
    for one in arrivals:
        week = by_day.get(int(one.submitted // DAY))
        if week is not None:
            demand[week] += one.leaf_cells * one.run_seconds
    least = _IDLE * sum(demand.values()) / len(demand)
    busy = [week for week in weeks if demand[week] >= least]
    drawn = Chances(seed).shuffled(busy)[:count]
    return sorted(drawn, key=lambda week: (-demand[week], week.first))


def arrivals_of(arrivals: Sequence[Arrival], stretch: Stretch) -> list[Arrival]:
    """Return the arrivals that are played, marked by whether they count."""
    return list(_marked(arrivals, stretch))


def _marked(arrivals: Sequence[Arrival], stretch: Stretch) -> Iterator[Arrival]:
    first, after = stretch.first * DAY, (stretch.last + 1) * DAY
    for one in arrivals:
        if not stretch.begin <= one.submitted < stretch.end:
            continue
        if one.is_counted and not first <= one.submitted < after:
            yield replace(one, is_counted=False)
        else:
            yield one
