"""How long the search may go on, and how long it still takes.

The judging comes last and needs the most time at once; its time is set aside. It is known from the
current document, which plays the judging days first of all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from cli.tune.kept import Evaluation
from policy.queues.durations import MINUTE
from timemachine.tuning.screening import Task
from timemachine.tuning.stretches import Stretch

_RESERVE: Final = 1.25
"""An evaluation may take somewhat longer than those before."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """The time of a search, from what finished evaluations took for each gang."""

    began: float
    """When the search began, by `clock`."""
    ends: float
    """When it has to end."""
    jobs: int
    clock: Callable[[], float]
    gangs: Callable[[Stretch], int]
    """How many gangs a stretch plays."""
    _seconds: float = 0.0
    _played: int = 0
    _judging: list[float] = field(default_factory=list)

    def note(self, stretch: Stretch, found: Evaluation, *, is_judging: bool) -> None:
        """Learn from an evaluation."""
        self._seconds += found.seconds
        self._played += self.gangs(stretch)
        if is_judging:
            self._judging.append(found.seconds)

    @property
    def left(self) -> float:
        """How many seconds are left."""
        return max(0.0, self.ends - self.clock())

    def screening_seconds(self, tasks: Iterable[Task], later: int) -> float:
        """Return how long evaluations take, and so many later ones of the same length."""
        gangs = [self.gangs(task.stretch) for task in tasks]
        mean = sum(gangs) / len(gangs) if gangs else 0.0
        each = self._seconds / self._played if self._played else 0.0
        return (sum(gangs) + later * mean) * each / self.jobs

    def judging_seconds(self, count: int) -> float:
        """Return how long it takes to judge so many finalists; 0 before that can be known."""
        if not self._judging:
            return 0.0
        rounds = -(-count // self.jobs)
        return rounds * max(self._judging) * _RESERVE

    def may_screen(self, finalists: int) -> bool:
        """Tell whether there is time for more than the judging.

        At least half of the whole time is for the search: if judging all finalists takes longer
        than the other half, time for fewer of them is set aside.
        """
        half = (self.ends - self.began) / 2
        while finalists > 1 and self.judging_seconds(finalists) > half:
            finalists -= 1
        return self.left > self.judging_seconds(finalists)


def minutes(seconds: float) -> str:
    """Write a time to go: `about 12 min`."""
    return f"about {round(seconds / MINUTE)} min" if seconds >= MINUTE else "less than a minute"
