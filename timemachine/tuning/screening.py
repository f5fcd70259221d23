"""Successive halving: which candidates play which weeks next, until a few are left.

The weeks that a rung adds are played by all candidates that are left; then the worse half goes. The
current document plays every week, since all others are compared with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from timemachine.tuning.candidates import Candidate
from timemachine.tuning.criteria import Criteria
from timemachine.tuning.figures import DayFigures
from timemachine.tuning.stretches import Stretch

FINALISTS: Final = 3


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation: a candidate plays a stretch."""

    candidate: Candidate
    stretch: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One round."""

    candidates: int
    """How many are in it, at most."""
    weeks: int
    """How many weeks each of them has played after it."""


def plan_rungs(candidates: int, *, weeks: int, finalists: int = FINALISTS) -> list[Rung]:
    """Return all rounds: half as many candidates in each, and twice as many weeks."""
    rungs: list[Rung] = []
    played = 1
    while candidates > finalists:
        rungs.append(Rung(candidates=candidates, weeks=min(played, weeks)))
        candidates, played = max(finalists, -(-candidates // 2)), played * 2
    # Who is best is decided by all weeks.
    last = Rung(candidates=max(candidates, rungs[-1].candidates if rungs else 0), weeks=weeks)
    return [*rungs[:-1], last]


@dataclass(slots=True, kw_only=True)
class Screening:
    """The state of the halving; the caller plays `tasks`, notes figures, and closes each rung."""

    current: Candidate
    left: Sequence[Candidate]
    """The candidates that are left, the best first once a rung was closed."""
    weeks: Sequence[Stretch]
    """In the order in which they are played."""
    criteria: Criteria
    finalists: int = FINALISTS
    rung: int = 0
    """The place of the rung that is played now."""
    rungs: Sequence[Rung] = ()
    everyone: Sequence[Candidate] = ()
    """All documents that are tried, the current one first."""
    _played: dict[tuple[str, Stretch], Sequence[DayFigures]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Plan the rungs."""
        self.everyone = (self.current, *self.left)
        self.rungs = plan_rungs(len(self.left), weeks=len(self.weeks), finalists=self.finalists)

    @property
    def is_over(self) -> bool:
        """Whether no rung is left."""
        return self.rung >= len(self.rungs)

    @property
    def _weeks_now(self) -> Sequence[Stretch]:
        return self.weeks[: self.rungs[self.rung].weeks]

    def tasks(self) -> list[Task]:
        """Return what is still to be played in this rung; the current document first."""
        return [
            Task(candidate, week)
            for week in self._weeks_now
            for candidate in (self.current, *self.left)
            if (candidate.name, week) not in self._played
        ]

    def later_tasks(self) -> int:
        """Return how many evaluations the rungs after this one need."""
        pairs = zip(self.rungs[self.rung :], self.rungs[self.rung + 1 :], strict=False)
        return sum((new.weeks - old.weeks) * (new.candidates + 1) for old, new in pairs)

    def note(self, task: Task, days: Sequence[DayFigures]) -> None:
        """Remember what an evaluation found."""
        self._played[task.candidate.name, task.stretch] = days

    def close_rung(self) -> None:
        """Leave the better half; all of them have played all weeks of the rung."""
        ranked = self.ranked()
        self.rung += 1
        count = self.finalists if self.is_over else self.rungs[self.rung].candidates
        self.left = ranked[:count]

    def cut_short(self) -> None:
        """End the screening, because time is short: leave as many as can be judged.

        Those who have played all weeks of this rung are ahead; the others follow as the last rung
        left them, or as they were given: judging days are fair to a document that was not trained.
        """
        ranked = self.ranked()
        others = [one for one in self.left if one not in ranked]
        self.left = [*ranked, *others][: self.finalists]
        self.rung = len(self.rungs)

    def ranked(self) -> list[Candidate]:
        """Return the candidates that have played all weeks of this rung, the best first."""
        weeks = self._weeks_now
        complete = [one for one in self.left if self.has_played(one, weeks)]
        if not complete or not self.has_played(self.current, weeks):
            return []
        days = [self.days_of(one, weeks) for one in complete]
        order = self.criteria.order(self.days_of(self.current, weeks), days)
        return [complete[place] for place in order]

    def has_played(self, candidate: Candidate, weeks: Sequence[Stretch]) -> bool:
        """Tell whether a candidate has played all these weeks."""
        return all((candidate.name, week) in self._played for week in weeks)

    def days_of(self, candidate: Candidate, weeks: Sequence[Stretch]) -> list[DayFigures]:
        """Return the figures of all days of weeks that a candidate has played."""
        return [one for week in weeks for one in self._played[candidate.name, week]]

    def played_most(self) -> Mapping[str, list[DayFigures]]:
        """Return the figures of those who have played as many weeks as any, by name.

        The current document is always one of them.
        """
        weeks = self.weeks_of_current()
        names = dict.fromkeys(name for name, _ in self._played)
        return {name: days for name in names if (days := self._days(name, weeks))}

    def weeks_of_current(self) -> list[Stretch]:
        """Return the weeks that the current document has played."""
        return [week for week in self.weeks if (self.current.name, week) in self._played]

    def _days(self, name: str, weeks: Sequence[Stretch]) -> list[DayFigures]:
        return list(self._collect(name, weeks)) if self._has_all(name, weeks) else []

    def _has_all(self, name: str, weeks: Sequence[Stretch]) -> bool:
        return all((name, week) in self._played for week in weeks)

    def _collect(self, name: str, weeks: Sequence[Stretch]) -> Iterator[DayFigures]:
        for week in weeks:
            yield from self._played[name, week]
