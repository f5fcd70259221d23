"""Predictions in the history of gangs, on Postgres and on its twin in memory."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.state.histories import HOUR, NOON, Stores, some_facts, stores

__all__ = ["stores"]


def _told(stamp: str, **told: Any) -> dict[str, Any]:
    prediction = {"key": "VC", "size": 8, "median": 3600.0, "low": 60.0, "high": 9000.0}
    return {"stamp": stamp, **prediction, **told}


async def test_the_first_prediction_of_each_kind_counts_whichever_arrives_first(
    stores: Stores,
) -> None:
    first = some_facts(predictions={"runTime": _told("1")})
    second = some_facts(predictions={"runTime": _told("2"), "start": _told("2", at=0.0)})
    await stores.tell(replace(second, stamp="2"), replace(first, stamp="1"))
    await stores.tell(some_facts(stamp="3"))
    [run] = await stores.history.open_runs(10)
    assert run.predictions == {"runTime": _told("1"), "start": _told("2", at=0.0)}


async def test_past_runs_are_read_by_their_ends_page_by_page(stores: Stores) -> None:
    begun = [
        some_facts(f"r{hour}", started_at=NOON, ended_at=NOON + hour * HOUR, outcome="failed")
        for hour in range(1, 4)
    ]
    predicted = replace(begun[0], predictions={"start": _told("1", at=5.0)})
    await stores.tell(
        predicted, *begun[1:], some_facts("open", started_at=NOON), some_facts("waits")
    )
    page = await stores.history.past_runs(2)
    assert [run.run for run in page] == ["r3", "r2"]
    [last] = await stores.history.past_runs(2, before=page[-1])
    assert (last.run, last.is_whole, last.start) == ("r1", True, _told("1", at=5.0))


async def test_predictions_are_compared_with_outcomes(stores: Stores) -> None:
    at = (NOON - HOUR).timestamp()
    for number, hours in enumerate((1, 1.5, 8)):
        told = {"runTime": _told("1"), "start": _told("1", at=at, key="below 4 h", median=1800.0)}
        ended = NOON + hours * HOUR
        run = some_facts(f"r{number}", user_name="alice", started_at=NOON, predictions=told)
        await stores.tell(replace(run, ended_at=ended, outcome="succeeded"))
    cut = some_facts("cut", started_at=NOON, predictions={"runTime": _told("1")})
    await stores.tell(replace(cut, ended_at=NOON + HOUR, outcome="preempted"))
    found = await stores.history.prediction_errors(NOON, NOON + 9 * HOUR)
    time, start = found
    assert (time.kind, time.key, time.size, time.runs) == ("runTime", "VC", 8, 3)
    assert time.median_factor == pytest.approx(1.5)
    assert [time.within_twice, time.covered] == pytest.approx([2 / 3, 2 / 3])
    assert (start.kind, start.key, start.runs) == ("start", "below 4 h", 3)
    assert start.median_factor == pytest.approx(2.0)
    assert await stores.history.prediction_errors(NOON, NOON + HOUR, user_name="bob") == []


@pytest.mark.parametrize(("was_told", "covered"), [((False, False), None), ((False, True), 0.0)])
async def test_only_intervals_that_were_told_count_as_covered(
    stores: Stores, was_told: tuple[bool, ...], covered: float | None
) -> None:
    at = (NOON - HOUR).timestamp()
    for number, told in enumerate(was_told):
        high = 600.0 if told else 9000.0
        start = _told("1", at=at, low=0.0, high=high, told=told)
        run = some_facts(f"r{number}", started_at=NOON, predictions={"start": start})
        await stores.tell(run)
    [error] = await stores.history.prediction_errors(NOON, NOON + HOUR)
    assert (error.runs, error.covered) == (2, covered)
