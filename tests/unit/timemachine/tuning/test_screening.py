"""Successive halving."""

from collections.abc import Callable

from policy.queues.durations import HOUR
from tests.support.timemachine.tuned_days import a_tree, days_of, searched
from timemachine.tuning.candidates import Candidate, propose
from timemachine.tuning.chances import Chances
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.figures import DayFigures
from timemachine.tuning.screening import Rung, Screening, Task, plan_rungs
from timemachine.tuning.stretches import divide

_PARAMETERS = searched("worth.shortRun=0..384h")
_WEEKS = divide(0, 80, judge_from=56).training


def _screening(count: int = 16, weeks: int = 4) -> Screening:
    current, *others = propose(a_tree(), _PARAMETERS, count=count, seed=1)
    criteria = Criteria(objectives=(Objective.MEAN,))
    return Screening(current=current, left=others, weeks=_WEEKS[:weeks], criteria=criteria)


def _wait(candidate: Candidate) -> float:
    """Waits are shortest where a short run is worth 40 hours."""
    worth = candidate.values.get(_PARAMETERS[0], 0.0)
    return HOUR + abs(worth - 40 * HOUR) / 40


def _noisy(task: Task) -> list[DayFigures]:
    chances = Chances(len(task.candidate.text) * 100 + task.stretch.first)
    means = [_wait(task.candidate) * (0.9 + 0.2 * chances.share()) for _ in task.stretch.days]
    days = days_of(*means)
    return [
        DayFigures(day=day, by_vc=one.by_vc, large=one.large)
        for day, one in zip(task.stretch.days, days, strict=True)
    ]


def _play(screening: Screening, evaluate: Callable[[Task], list[DayFigures]]) -> int:
    played = 0
    while not screening.is_over:
        for task in screening.tasks():
            screening.note(task, evaluate(task))
            played += 1
        screening.close_rung()
    return played


def test_each_rung_has_half_as_many_candidates_and_more_weeks() -> None:
    assert plan_rungs(32, weeks=4) == [
        Rung(candidates=32, weeks=1),
        Rung(candidates=16, weeks=2),
        Rung(candidates=8, weeks=4),
        Rung(candidates=4, weeks=4),
    ]


def test_who_is_best_is_decided_by_all_weeks() -> None:
    assert plan_rungs(5, weeks=8)[-1].weeks == 8
    assert plan_rungs(2, weeks=8) == [Rung(candidates=2, weeks=8)]
    assert plan_rungs(0, weeks=8) == [Rung(candidates=0, weeks=8)]


def test_the_search_finds_the_best_worth_through_noise_and_plays_few_weeks() -> None:
    screening = _screening()
    played = _play(screening, _noisy)
    best = min(screening.left, key=_wait)
    assert len(screening.left) == 3
    assert best.name == min((one for one in screening.left), key=_wait).name
    everyone = propose(a_tree(), _PARAMETERS, count=16, seed=1)[1:]
    assert _wait(best) == min(map(_wait, everyone))
    assert played < 17 * 4 * 0.6


def test_tasks_that_are_done_are_not_asked_for_again() -> None:
    screening = _screening(count=4, weeks=2)
    first, *others = screening.tasks()
    assert first.candidate is screening.current
    screening.note(first, _noisy(first))
    assert screening.tasks() == others


def test_later_tasks_are_counted() -> None:
    screening = _screening()
    total = len(screening.tasks()) + screening.later_tasks()
    assert _play(screening, _noisy) == total


def test_without_time_those_who_have_played_are_judged_and_then_those_of_the_last_rung() -> None:
    screening = _screening(count=16)
    for task in screening.tasks():
        screening.note(task, _noisy(task))
    screening.close_rung()
    before = list(screening.left)
    fast = before[5]
    for task in screening.tasks():
        if task.candidate in (screening.current, fast):
            screening.note(task, _noisy(task))
    screening.cut_short()
    assert screening.is_over
    assert screening.left == [fast, before[0], before[1]]


def test_candidates_that_have_played_nothing_are_judged_as_they_were_given() -> None:
    screening = _screening(count=8)
    for task in screening.tasks()[1:]:
        screening.note(task, _noisy(task))
    assert screening.ranked() == [], "without the current document none can be compared"
    given = list(screening.left)
    screening.cut_short()
    assert screening.left == given[:3]


def test_what_played_most_is_compared_on_the_same_days() -> None:
    screening = _screening()
    _play(screening, _noisy)
    found = screening.played_most()
    assert "current" in found
    assert {len(days) for days in found.values()} == {28}
    assert {one.name for one in screening.left} <= set(found)
    assert len(found) < 10
