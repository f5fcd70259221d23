"""The rows of both sides beside each other."""

import math

from cli.whatif.html.sections.rows import Row, most_important, pair_rows
from tests.support.whatif.comparisons import Shape, a_comparison
from timemachine.comparison import Grouping, Waits


def _waits(gangs: int, mean: float, *, longest: float = 0.0, never: int = 0) -> Waits:
    return Waits(gangs=gangs, mean=mean, median=1.0, p95=2.0, longest=longest, never_started=never)


def test_rows_keep_the_order_of_the_comparison() -> None:
    comparison = a_comparison(Shape(vcs=4))
    names = [row.name for row in pair_rows(comparison, Grouping.VC)]
    assert names == ["vision", "language", "speech", "ads"]


def test_the_effect_counts_gangs_that_were_admitted_on_both_sides() -> None:
    assert Row("a", _waits(10, 60), _waits(8, 30)).impact == -240
    assert Row("a", _waits(10, 60), None).impact == 0


def test_few_rows_are_all_kept() -> None:
    rows = [Row(str(index), _waits(1, 1), _waits(1, 2)) for index in range(5)]
    assert most_important(rows, most=5) == rows


def test_many_rows_become_the_most_important_in_their_order_and_the_others_as_one() -> None:
    rows = [
        Row("small", _waits(2, 10, longest=50, never=1), _waits(2, 10)),
        Row("gains", _waits(10, 100), _waits(10, 50)),
        Row("tiny", _waits(1, 40, longest=90, never=1), _waits(1, 40)),
        Row("loses", _waits(10, 100), _waits(10, 110)),
        Row("new", None, _waits(1, 5)),
    ]
    first, second, others = most_important(rows, most=2)
    assert (first.name, second.name, others.name) == ("gains", "loses", "3 others")
    assert others.before is not None
    assert (others.before.gangs, others.before.mean) == (3, 20)
    assert (others.before.longest, others.before.never_started) == (90, 2)
    assert math.isnan(others.before.p95)
    assert others.after is not None
    assert others.after.gangs == 4
