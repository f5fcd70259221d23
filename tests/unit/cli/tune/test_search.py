"""The search plays what is asked for, and keeps its time."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from cli.tune.budget import Budget, minutes
from cli.tune.kept import Evaluation, KeptEvaluations
from cli.tune.search import Found, Search
from policy.queues.durations import HOUR
from tests.support.timemachine.tuned_days import a_day, a_tree, searched
from timemachine.tuning.candidates import propose
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.screening import Screening, Task
from timemachine.tuning.stretches import divide

_PARAMETERS = searched("worth.shortRun=0..384h")
_DIVISION = divide(0, 55, judge_from=28)


class _Clock:
    now = 0.0


class _Players:
    """Each evaluation takes a minute for each played day, by a clock of its own."""

    def __init__(self, clock: _Clock, *, jobs: int = 1) -> None:
        self.jobs = jobs
        self.tasks: list[Task] = []
        self._clock = clock

    def play(self, task: Task) -> "asyncio.Future[Evaluation]":
        self.tasks.append(task)
        seconds = 60.0 * len(task.stretch.days)
        wait = HOUR * (2 - bool(task.candidate.values))
        days = [a_day(day, {"a": [wait] * 30}) for day in task.stretch.days]
        future: asyncio.Future[Evaluation] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            self._clock.now += seconds
            future.set_result(Evaluation(days=days, seconds=seconds))

        asyncio.get_running_loop().call_soon(finish)
        return future


def _search(
    players: _Players,
    clock: _Clock,
    *,
    time: float = 1e6,
    path: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Search:
    current, *others = propose(a_tree(), _PARAMETERS, count=8, seed=1)
    kept = KeptEvaluations("common", path)
    kept.load()
    return Search(
        screening=Screening(
            current=current,
            left=others,
            weeks=_DIVISION.training,
            criteria=Criteria(objectives=(Objective.MEAN,)),
        ),
        judging=_DIVISION.judging,
        players=players,
        kept=kept,
        budget=Budget(
            began=0.0,
            ends=time,
            jobs=players.jobs,
            clock=lambda: clock.now,
            gangs=lambda stretch: len(stretch.days),
        ),
        tell=tell,
    )


async def _run(time: float = 1e6, path: Path | None = None) -> tuple[Found, _Players]:
    clock = _Clock()
    players = _Players(clock)
    return await _search(players, clock, time=time, path=path).run(), players


async def test_candidates_play_weeks_and_the_last_three_and_the_current_one_are_judged() -> None:
    found, players = await _run()
    judged = [task for task in players.tasks if task.stretch == _DIVISION.judging]
    assert judged[0].candidate.name == "current"
    assert judged[0] is players.tasks[0], "the verdict and the time of the judging depend on it"
    assert [one.name for one, _ in found.finalists] == [task.candidate.name for task in judged[1:]]
    assert len(found.finalists) == 3
    assert found.played == len(players.tasks)
    assert not found.was_cut
    assert not found.unjudged


async def test_what_is_finished_is_not_played_again(tmp_path: Path) -> None:
    first, _ = await _run(path=tmp_path / "kept")
    again, players = await _run(path=tmp_path / "kept")
    assert players.tasks == []
    assert (again.played, again.kept) == (0, first.played)
    assert again.finalists == first.finalists


async def test_when_time_is_short_fewer_weeks_are_played_and_the_finalists_still_judged() -> None:
    """Judging takes 28 minutes for each of four; the weeks would take 28 for each of nine."""
    found, players = await _run(time=60.0 * 28 * 7)
    assert found.was_cut
    assert len(found.finalists) == 3
    assert sum(task.stretch != _DIVISION.judging for task in players.tasks) > 8


async def test_without_time_for_the_judging_it_is_said_who_was_not_judged() -> None:
    found, _ = await _run(time=60.0 * 28 * 2)
    assert found.current is not None
    assert found.was_cut
    assert len(found.finalists) + len(found.unjudged) <= 3


async def test_half_of_the_time_is_for_the_search_even_if_judging_all_finalists_takes_more() -> (
    None
):
    """Of 140 minutes, judging three finalists would take 105; time for one of them is set aside."""
    found, players = await _run(time=60.0 * 28 * 5)
    played = [task for task in players.tasks if task.stretch != _DIVISION.judging]
    assert found.was_cut
    assert len(played) >= 5
    assert found.finalists


async def test_a_search_without_any_time_ends_at_once() -> None:
    found, players = await _run(time=0.0)
    assert found.finalists == []
    assert len(players.tasks) == 1


async def test_it_tells_how_far_it_is_and_how_long_it_takes() -> None:
    told: list[str] = []
    clock = _Clock()
    await _search(_Players(clock), clock, tell=told.append).run()
    assert told[0].startswith("round 1 of 2, 1 evaluation finished, about ")
    assert told[-1].startswith("judging, ")
    assert told[-1].endswith(" evaluations finished, less than a minute left")
    lengths = [int(one.split("about ")[1].split(" ")[0]) for one in told if "about" in one]
    assert lengths[0] > lengths[-1]


def test_times_to_go_are_told_in_minutes() -> None:
    assert [minutes(seconds) for seconds in (5.0, 95.0, 7200.0)] == [
        "less than a minute", "about 2 min", "about 120 min",
    ]  # fmt: skip
