"""What a search says to people, where a whole search does not come by."""

from collections.abc import Sequence
from datetime import UTC, datetime

from cli.tune.output import write_document
from cli.tune.report import format_result
from cli.tune.result import Asked, Result, conclude
from cli.tune.search import Found
from policy.parser import DocumentKind, parse_document
from tests.support.timemachine.tuned_days import a_day, a_tree, searched
from timemachine.tuning.candidates import Candidate, propose
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.figures import DayFigures
from timemachine.tuning.screening import Screening, Task
from timemachine.tuning.stretches import divide

_PARAMETERS = searched("worth.shortRun=0..384h")
_DIVISION = divide(17_000, 17_055, judge_from=17_028)
_CURRENT, *_OTHERS = propose(a_tree(), _PARAMETERS, count=3, seed=1)


def _days(days: Sequence[int], hours: float, *, b: float = 1.0) -> list[DayFigures]:
    waits = [hours * 3600 * (1 + day % 3) for day in days]
    return [
        a_day(day, {"a": [wait] * 30, "b": [wait * b] * 30}, large=[wait * 4])
        for day, wait in zip(days, waits, strict=True)
    ]


def _result(
    *finalists: tuple[Candidate, list[DayFigures]],
    unjudged: Sequence[Candidate] = (),
    is_judged: bool = True,
    criteria: Criteria | None = None,
) -> Result:
    criteria = criteria or Criteria()
    weeks = _DIVISION.training[:1]
    screening = Screening(current=_CURRENT, left=_OTHERS, weeks=weeks, criteria=criteria)
    for place, candidate in enumerate((_CURRENT, *_OTHERS)):
        screening.note(Task(candidate, weeks[0]), _days(weeks[0].days, 1.0 - place / 10))
    asked = Asked(
        source="a trace", notes=("The trace names no users.",), division=_DIVISION, weeks=weeks,
        judged_gangs=1680, parameters=_PARAMETERS, unsearched={}, criteria=criteria, large=16,
        seed=1,
    )  # fmt: skip
    found = Found(
        current=_days(_DIVISION.judging.days, 1.0) if is_judged else None, finalists=finalists,
        unjudged=unjudged, played=7, kept=2, was_cut=bool(unjudged),
    )  # fmt: skip
    return conclude(asked, screening, found)


def _told(result: Result) -> str:
    return "\n".join(format_result(result))


_JUDGING = _DIVISION.judging.days


def test_a_better_document_is_told_with_its_intervals() -> None:
    told = _told(_result((_OTHERS[0], _days(_JUDGING, 0.5))))
    assert f"{_OTHERS[0].name} is better than the current document:" in told
    assert "  mean wait 2.0 h to 58.9 min, -50 % [" in told
    assert "no VC waits longer by more than 5 % of its mean wait and 1 min" in told
    assert "played        3 documents besides the current one, 9 evaluations, 2 of them" in told


def test_the_frontier_is_marked() -> None:
    lines = _told(_result((_OTHERS[0], _days(_JUDGING, 0.5)))).splitlines()
    marked = [line.split()[1] for line in lines if line.startswith("  * ")]
    assert marked == [_OTHERS[2].name.split()[0]]


def test_who_leaves_a_vc_worse_off_is_not_proposed_and_the_vc_is_named() -> None:
    told = _told(_result((_OTHERS[0], _days(_JUDGING, 0.5, b=2.5))))
    assert "No document is better than the current one beyond noise." in told
    assert f"{_OTHERS[0].name}: worse off: b" in told


def test_a_limit_that_is_not_kept_is_named() -> None:
    days = [a_day(one.day, {}, large=[1e6]) for one in _days(_JUDGING, 0.5)]
    for new, old in zip(days, _days(_JUDGING, 0.5), strict=True):
        new.by_vc.update(old.by_vc)
    criteria = Criteria(limits={Objective.LARGE: 0.0})
    told = _told(_result((_OTHERS[0], days), criteria=criteria))
    assert f"{_OTHERS[0].name}: beyond its limit: large" in told


def test_finalists_without_time_are_named() -> None:
    told = _told(_result((_OTHERS[0], _days(_JUDGING, 0.5)), unjudged=_OTHERS[1:2]))
    assert f"{_OTHERS[1].name} was not judged: the time was over." in told
    assert "The time was short: some documents played fewer weeks." in told


def test_without_any_judging_more_time_is_asked_for() -> None:
    told = _told(_result(unjudged=_OTHERS, is_judged=False))
    assert "No document was judged: the time was over. Give more --minutes" in told


def test_the_file_says_where_the_document_is_from_and_is_valid() -> None:
    result = _result((_OTHERS[0], _days(_JUDGING, 0.5)))
    assert result.best is not None
    text = write_document(result, result.best, now=datetime(2026, 3, 1, tzinfo=UTC))
    comment = [line for line in text.splitlines() if line.startswith("#")]
    assert " at 2026-03-01T00:00:00Z. It is not applied." in comment[0]
    assert "# Arrivals: a trace." in comment
    days = "# Trained on 2016-07-18 to 2016-08-14, seed 1; judged on 2016-08-15 to 2016-09-11."
    assert days in comment
    assert parse_document(text, kind=DocumentKind.QUEUES)
