"""How the documents fared on the training weeks."""

from tests.support.timemachine.tuned_days import a_day, a_tree, searched
from timemachine.tuning.candidates import propose
from timemachine.tuning.criteria import Criteria
from timemachine.tuning.screening import Screening, Task
from timemachine.tuning.stretches import divide
from timemachine.tuning.training import compare_trained

_WEEKS = divide(0, 40, judge_from=28).training[:2]
# The mean wait, and the wait of large gangs, of the current document and four others.
_FARED = [(100.0, 100.0), (50.0, 200.0), (90.0, 90.0), (95.0, 95.0), (10.0, 10.0)]


def _screening() -> Screening:
    current, *others = propose(a_tree(), searched("worth.shortRun=0..384h"), count=4, seed=1)
    screening = Screening(current=current, left=others, weeks=_WEEKS, criteria=Criteria())
    for candidate, (mean, large) in zip(screening.everyone, _FARED, strict=True):
        weeks = _WEEKS[:1] if candidate is screening.everyone[-1] else _WEEKS
        for week in weeks:
            days = [a_day(day, {"a": [mean] * 30}, large=[large]) for day in week.days]
            screening.note(Task(candidate, week), days)
    return screening


def test_those_that_played_most_are_compared_the_frontier_first() -> None:
    screening = _screening()
    _, first, second, third, last = screening.everyone
    found = compare_trained(screening, seed=1)
    names = [one.judged.candidate.name for one in found]
    assert names == [first.name, second.name, third.name, "current"]
    assert [one.is_on_frontier for one in found] == [True, True, False, False]
    assert last.name not in names, "it has played one week only"


def test_without_figures_of_the_current_document_nothing_is_compared() -> None:
    current, *others = propose(a_tree(), searched("worth.shortRun=0..384h"), count=4, seed=1)
    screening = Screening(current=current, left=others, weeks=_WEEKS, criteria=Criteria())
    assert compare_trained(screening, seed=1) == ()
