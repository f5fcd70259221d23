"""What is remembered of a played stretch, by the day on which gangs were submitted.

Days are summed, not gangs: a day is the least that the search resamples, and an evaluation stays
small enough for one line of a file. Waits of large gangs are kept one by one, for their p95.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.queues.durations import DAY
from timemachine.model import Fate, Run
from timemachine.tuning.stretches import Stretch

_P95: Final = 0.95


@dataclass(slots=True, kw_only=True)
class Waited:
    """Gangs, and how long they waited together."""

    gangs: float = 0.0
    seconds: float = 0.0

    def add(self, other: "Waited", times: float = 1.0) -> None:
        """Add others, so many times."""
        self.gangs += other.gangs * times
        self.seconds += other.seconds * times

    @property
    def mean(self) -> float:
        """The mean wait; 0 without gangs."""
        return self.seconds / self.gangs if self.gangs else 0.0


@dataclass(slots=True, kw_only=True)
class DayFigures:
    """How the gangs of one day fared."""

    day: int
    """Days since 1970."""
    by_vc: dict[str, Waited] = field(default_factory=dict)
    large: list[float] = field(default_factory=list)
    """The waits of large gangs, in the order of submission."""

    @property
    def all(self) -> Waited:
        """All gangs of the day."""
        total = Waited()
        for waited in self.by_vc.values():
            total.add(waited)
        return total


@dataclass(slots=True, kw_only=True)
class Totals:
    """The figures of several days together."""

    all: Waited = field(default_factory=Waited)
    by_vc: dict[str, Waited] = field(default_factory=dict)
    large: list[float] = field(default_factory=list)

    @property
    def large_p95(self) -> float:
        """The wait that 95 % of the large gangs do not exceed; 0 without any."""
        waits = sorted(self.large)
        return waits[min(len(waits) - 1, int(len(waits) * _P95))] if waits else 0.0


def figures_of(run: Run, stretch: Stretch, *, large: int) -> list[DayFigures]:
    """Sum up how the gangs of a stretch fared; those of so many leaf cells are large.

    A gang that never started has waited until the end.
    """
    days = {day: DayFigures(day=day) for day in stretch.days}
    for fate in run.fates:
        found = days.get(day_of(fate.arrival.submitted))
        if found is None or not fate.arrival.is_counted or not _may_wait(fate):
            continue
        wait = _wait(fate, run)
        waited = found.by_vc.setdefault(str(fate.arrival.vc), Waited())
        waited.add(Waited(gangs=1.0, seconds=wait))
        if fate.arrival.leaf_cells >= large:
            found.large.append(wait)
    return list(days.values())


def _may_wait(fate: Fate) -> bool:
    """Tell whether the order of the queue matters to a gang."""
    return fate.is_admitted and fate.can_start


def _wait(fate: Fate, run: Run) -> float:
    until = fate.started if fate.started is not None else run.end
    return max(0.0, until - fate.arrival.submitted)


def day_of(moment: float) -> int:
    """Return the day of a moment, in UTC."""
    return int(moment // DAY)


def add_up(days: Iterable[DayFigures]) -> Totals:
    """Return the figures of several days together."""
    listed = list(days)
    return add_weighted(listed, {one.day: 1 for one in listed})


def add_weighted(days: Sequence[DayFigures], times: Mapping[int, int]) -> Totals:
    """Return the figures of days together, each as often as `times` says."""
    total = Totals()
    for one in days:
        often = times.get(one.day, 0)
        if not often:
            continue
        for vc, waited in one.by_vc.items():
            total.by_vc.setdefault(vc, Waited()).add(waited, often)
            total.all.add(waited, often)
        total.large.extend(one.large * often)
    return total
