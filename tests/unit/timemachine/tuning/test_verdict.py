"""Whether a candidate is better on the judging days, beyond noise."""

from collections.abc import Sequence

import pytest

from tests.support.timemachine.tuned_days import a_day, a_tree, searched
from timemachine.tuning.candidates import Candidate, propose
from timemachine.tuning.chances import Chances
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.figures import DayFigures
from timemachine.tuning.verdict import Verdict, judge

_FOUND = propose(a_tree(), searched("worth.shortRun=0..384h"), count=3, seed=1)[1:]
_CRITERIA = Criteria(objectives=(Objective.MEAN,))


def _days(factor: float, *, seed: int, spread: float = 0.0, b: float = 1.0) -> list[DayFigures]:
    """Busy and idle days; the spread is noise of the document, on top of what days share."""
    common, own = Chances(99), Chances(seed)
    days = []
    for day in range(40):
        wait = 3600.0 * 4 * common.share() * factor * (1 + spread * (own.share() - 0.5))
        days.append(a_day(day, {"a": [wait] * 30, "b": [wait * b] * 30}, large=[wait * 3]))
    return days


def _judge(*after: Sequence[DayFigures], criteria: Criteria = _CRITERIA) -> Verdict:
    finalists = list(zip(_FOUND, after, strict=False))
    return judge(_days(1.0, seed=0), finalists, criteria, seed=5)


def test_a_document_that_is_better_on_most_days_is_found_though_days_differ_much() -> None:
    verdict = _judge(_days(0.9, seed=1, spread=0.2))
    assert verdict.best is not None
    change = verdict.best.changes[Objective.MEAN]
    assert change.part is not None
    assert change.part.low < -0.1 < change.part.high < 0.0
    assert change.after < change.before


def test_a_document_that_differs_by_noise_alone_is_not_better() -> None:
    wrong = [
        seed for seed in range(20) if _judge(_days(1.0, seed=seed, spread=0.6)).best is not None
    ]
    assert len(wrong) <= 2  # of 20 intervals, each of which is wrong on this side once in 40


def test_the_first_finalist_that_is_better_is_chosen_not_the_luckiest() -> None:
    verdict = _judge(_days(0.9, seed=1, spread=0.2), _days(0.5, seed=2, spread=0.2))
    assert verdict.best is verdict.finalists[0]


def test_a_document_that_leaves_a_vc_worse_off_is_not_chosen() -> None:
    verdict = _judge(_days(0.5, seed=1, b=2.4), _days(0.8, seed=2))
    first, second = verdict.finalists
    assert first.worse_vcs == ["b"]
    assert first.changes[Objective.MEAN].difference.is_below_zero
    assert not first.keeps_constraints
    assert verdict.best is second
    assert second.vcs["b"].gangs == 1200
    assert not second.vcs["b"].is_worse
    assert second.vcs["b"].is_judged


def test_a_document_beyond_a_limit_is_not_chosen() -> None:
    criteria = Criteria(objectives=(Objective.MEAN,), limits={Objective.LARGE: -0.5})
    verdict = _judge(_days(0.8, seed=1), criteria=criteria)
    assert verdict.best is None
    assert list(verdict.finalists[0].broken) == [Objective.LARGE]


def test_intervals_are_wider_with_more_finalists_so_that_all_hold_together() -> None:
    after = _days(0.9, seed=1, spread=0.5)
    alone, three = _judge(after), _judge(after, after, after)
    widths = [
        one.finalists[0].changes[Objective.MEAN].difference.high
        - one.finalists[0].changes[Objective.MEAN].difference.low
        for one in (alone, three)
    ]
    assert widths[1] > widths[0] * 1.1


def test_what_was_nothing_before_has_no_part() -> None:
    idle = [a_day(day, {"a": [0.0] * 30}) for day in range(4)]
    verdict = judge(idle, [(_FOUND[0], idle)], _CRITERIA, seed=1)
    assert verdict.best is None
    assert verdict.finalists[0].changes[Objective.MEAN].part is None


def test_without_finalists_no_document_is_better() -> None:
    assert judge(_days(1.0, seed=0), [], _CRITERIA, seed=1).best is None


def test_the_same_seed_gives_the_same_intervals() -> None:
    first, again = (_judge(_days(0.9, seed=1, spread=0.5)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("place", [0, 1])
def test_finalists_stay_in_the_order_of_training(place: int) -> None:
    verdict = _judge(_days(1.0, seed=1), _days(0.9, seed=2))
    found: Candidate = verdict.finalists[place].candidate
    assert found is _FOUND[place]
