"""Plays what the search asks for, until the finalists are judged or the time is over."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cli.tune.budget import Budget, minutes
from cli.tune.kept import Evaluation, KeptEvaluations
from cli.tune.workers import Players
from policy.wording import count_of
from timemachine.tuning.candidates import Candidate
from timemachine.tuning.figures import DayFigures
from timemachine.tuning.screening import Screening, Task
from timemachine.tuning.stretches import Stretch

_PROGRESS_SECONDS: Final = 1.0

Judged = tuple[Candidate, Sequence[DayFigures]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found."""

    current: Sequence[DayFigures] | None
    """The current document on the judging days; None if there was no time for it."""
    finalists: Sequence[Judged]
    """In the order that training gave them; only those that could be judged."""
    unjudged: Sequence[Candidate]
    """Finalists for which there was no time."""
    played: int
    kept: int
    """How many evaluations were taken from the file."""
    was_cut: bool
    """Whether the screening ended early, because time was short."""


@dataclass(slots=True, kw_only=True)
class Search:
    """One search: what is done, and what goes on."""

    screening: Screening
    judging: Stretch
    players: Players
    kept: KeptEvaluations
    budget: Budget
    tell: Callable[[str], None]
    """Shows how far the search is."""
    played: int = 0
    from_file: int = 0
    was_cut: bool = False
    _running: dict["asyncio.Future[Evaluation]", Task] = field(default_factory=dict)
    _judged: dict[str, Sequence[DayFigures]] = field(default_factory=dict)

    async def run(self) -> Found:
        """Screen, then judge."""
        current = self.screening.current
        # First of all: without it there is no verdict, and it shows how long judging takes.
        self._begin([Task(current, self.judging)])
        while not self.screening.is_over:
            await self._play_rung()
        finalists = list(self.screening.left)
        if self.budget.left:
            self._begin([Task(one, self.judging) for one in finalists])
        while self._running and self.budget.left:
            await self._step()
        judged = [one for one in finalists if one.name in self._judged]
        return Found(
            current=self._judged.get(current.name),
            finalists=[(one, self._judged[one.name]) for one in judged],
            unjudged=[one for one in finalists if one not in judged],
            played=self.played,
            kept=self.from_file,
            was_cut=self.was_cut,
        )

    async def _play_rung(self) -> None:
        """Play what the rung needs, a few evaluations ahead, so that time can still end it."""
        waiting = self._known(self.screening.tasks())
        while waiting or self._screens():
            if not self.budget.may_screen(self.screening.finalists):
                self.was_cut = True
                self.screening.cut_short()
                return
            while waiting and len(self._running) < self.players.jobs:
                self._submit(waiting.pop(0))
            await self._step(waiting)
        self.screening.close_rung()

    def _screens(self) -> bool:
        return any(task.stretch != self.judging for task in self._running.values())

    def _begin(self, tasks: Sequence[Task]) -> None:
        for task in self._known(tasks):
            self._submit(task)

    def _known(self, tasks: Sequence[Task]) -> list[Task]:
        """Note the evaluations that the file has; return the others."""
        left: list[Task] = []
        for task in tasks:
            found = self.kept.of(task)
            if found is None:
                left.append(task)
            else:
                self.from_file += 1
                self._note(task, found)
        return left

    def _submit(self, task: Task) -> None:
        self._running[self.players.play(task)] = task

    async def _step(self, waiting: Sequence[Task] = ()) -> None:
        """Wait for a moment, or until an evaluation is finished, and note what it found."""
        done, _ = await asyncio.wait(
            self._running,
            timeout=min(_PROGRESS_SECONDS, self.budget.left),
            return_when=asyncio.FIRST_COMPLETED,
        )
        for future in done:
            task, found = self._running.pop(future), future.result()
            self.kept.keep(task, found)
            self.played += 1
            self._note(task, found)
        self.tell(self._progress(waiting))

    def _note(self, task: Task, found: Evaluation) -> None:
        is_judging = task.stretch == self.judging
        self.budget.note(task.stretch, found, is_judging=is_judging)
        if is_judging:
            self._judged[task.candidate.name] = found.days
        else:
            self.screening.note(task, found.days)

    def _progress(self, waiting: Sequence[Task]) -> str:
        screening = self.screening
        if screening.is_over:
            left, what = self.budget.judging_seconds(len(self._running)), "judging"
        else:
            left = self.budget.screening_seconds(waiting, screening.later_tasks())
            left += self.budget.judging_seconds(screening.finalists)
            what = f"round {screening.rung + 1} of {len(screening.rungs)}"
        left = min(left, self.budget.left)
        done = self.played + self.from_file
        told = f"{minutes(left)} left" if done else "at most " + minutes(self.budget.left)
        return f"{what}, {count_of(done, 'evaluation')} finished, {told}"
