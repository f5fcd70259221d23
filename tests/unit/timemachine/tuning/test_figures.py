"""What is remembered of a played stretch."""

from dataclasses import replace

from policy.rules.decision import Outcome
from policy.submission import ClassName
from tests.support.timemachine.tuned_days import a_day
from tests.support.timemachine.worlds import DAY, a_world, an_arrival
from timemachine.model import Arrival, Fate, Run
from timemachine.tuning.figures import Waited, add_up, add_weighted, figures_of
from timemachine.tuning.stretches import Stretch

_WORLD = a_world()


def _fate(arrival: Arrival, wait: float | None, outcome: Outcome = Outcome.ADMITTED) -> Fate:
    started = None if wait is None else arrival.submitted + wait
    return Fate(arrival=arrival, outcome=outcome, class_name=ClassName("prod"), started=started)


def _run(*fates: Fate) -> Run:
    return Run(
        world=_WORLD, fates=fates, begin=0.0, end=4 * DAY, use=(), utilisation=0.0,
        fragmentation=0.0, longest_head_wait=0.0,
    )  # fmt: skip


_STRETCH = Stretch(first=1, last=2, begin=0.0, end=4 * DAY)


def test_waits_are_summed_by_day_and_vc_and_those_of_large_gangs_are_kept() -> None:
    run = _run(
        _fate(an_arrival("a", at=1.2 * DAY), 60.0),
        _fate(an_arrival("b", 16, at=1.9 * DAY), 120.0),
        _fate(an_arrival("c", at=2.0 * DAY, vc="b"), 0.0),
    )
    first, second = figures_of(run, _STRETCH, large=16)
    assert first == a_day(1, {"a": [60.0, 120.0]}, large=[120.0])
    assert second == a_day(2, {"b": [0.0]})
    assert first.all == Waited(gangs=2.0, seconds=180.0)


def test_gangs_of_other_days_uncounted_and_refused_ones_do_not_count() -> None:
    run = _run(
        _fate(an_arrival("one", at=0.9 * DAY), 60.0),
        _fate(an_arrival("one", at=3.0 * DAY), 60.0),
        _fate(replace(an_arrival("one", at=1.0 * DAY), is_counted=False), 60.0),
        _fate(an_arrival("one", at=1.0 * DAY), None, Outcome.REFUSED),
        replace(_fate(an_arrival("one", at=1.0 * DAY), None), can_start=False),
        _fate(an_arrival("one", at=1.0 * DAY), 30.0, Outcome.QUEUED),
    )
    assert figures_of(run, _STRETCH, large=16) == [a_day(1, {"a": [30.0]}), a_day(2, {})]


def test_a_gang_that_never_started_has_waited_until_the_end() -> None:
    (day, _) = figures_of(_run(_fate(an_arrival("one", at=1.0 * DAY), None)), _STRETCH, large=16)
    assert day.by_vc["a"].seconds == 3 * DAY


def test_days_are_added_as_often_as_they_were_drawn() -> None:
    days = [a_day(0, {"a": [10.0, 20.0]}, large=[20.0]), a_day(1, {"a": [70.0], "b": [1.0]})]
    once, drawn = add_up(days), add_weighted(days, {0: 3})
    assert (once.all.gangs, once.all.mean, once.large) == (4.0, 25.25, [20.0])
    assert (drawn.all.gangs, drawn.all.mean, drawn.large) == (6.0, 15.0, [20.0] * 3)
    assert "b" not in drawn.by_vc


def test_the_p95_of_large_gangs_is_a_wait_that_95_percent_do_not_exceed() -> None:
    totals = add_up([a_day(0, {}, large=[float(wait) for wait in range(100, 0, -1)])])
    assert totals.large_p95 == 96.0
    assert add_up([]).large_p95 == 0.0
    assert add_up([]).all.mean == 0.0
