"""Ranks, reservations and lifted gates decided again from the rows of two leaders."""

import asyncio
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from extender.cluster import order_rows
from extender.cluster.order_replay import order_content
from extender.cluster.replay import Report, replay_epoch
from extender.queue.reserve.model import ReservationStep
from policy.policy import restore
from state.log.records import DecisionRecord, RowKind
from tests.support.queue.logged_history import (
    BOOKED,
    FIRST,
    LoggedHistory,
    replayed,
    rows,
    the_log,
)
from tests.support.queue.logged_world import Asked, read_policy

Row = dict[str, Any]


def test_a_history_with_everything_in_it_is_decided_alike() -> None:
    reports = replayed()
    assert [report.differences for report in reports] == [[], []]
    assert all(report.is_identical for report in reports)
    assert sum(report.rows for report in reports) == len(the_log().records)


def test_the_history_has_everything_in_it() -> None:
    """What the other tests of this file prove depends on it."""
    outcomes = {(record.kind, record.outcome) for record in the_log().records}
    assert {("ordering", one) for one in ("ranked", "reordered", "left")} < outcomes
    steps = {*ReservationStep} - {ReservationStep.CLEARED, ReservationStep.RERANKED}
    assert {("reservation", str(step)) for step in steps} < outcomes
    assert ("placement", "preempting") in outcomes
    assert {record.subject for record in rows(RowKind.RESERVATION)} > {"entry demo"}
    ranked = [one for one in rows(RowKind.ORDERING) if one.outcome == "ranked"]
    assert any("ownLevel" in one.details["decision"] for one in ranked), "some were promoted"
    assert any("placeOf" in one.inputs for one in ranked), "some were swapped"
    assert len({one.inputs["policy"] for one in the_log().records if one.outcome == "followed"}) > 2


@pytest.mark.parametrize("seed", [2, 3])
async def test_other_histories_are_decided_alike(seed: int) -> None:
    history = LoggedHistory(seed)
    history.play(60)
    await history.log.flush()
    for epoch in (1, 2):
        report = await replay_epoch(history.store, epoch=epoch)
        assert report.differences == []
        assert report.is_identical


# -- what was tampered with is found


def _replay_with(
    outcome: str, change: Callable[[DecisionRecord], DecisionRecord]
) -> tuple[Report, DecisionRecord]:
    """Replay an epoch in which one row was changed: the last one of an outcome that has it."""
    store, epoch = deepcopy(the_log()), 2
    index, record = next(
        (index, record)
        for index, record in reversed(list(enumerate(store.records)))
        if (record.epoch, record.outcome) == (epoch, outcome)
        and "decision" in record.details
        and change(record) != record
    )
    store.records[index] = change(record)
    return asyncio.run(replay_epoch(store, epoch=epoch)), record


def _decided(**other: Any) -> Callable[[DecisionRecord], DecisionRecord]:
    def change(record: DecisionRecord) -> DecisionRecord:
        decision = {**record.details["decision"], **other}
        return replace(record, details={**record.details, "decision": decision})

    return change


def _given(**other: Any) -> Callable[[DecisionRecord], DecisionRecord]:
    def change(record: DecisionRecord) -> DecisionRecord:
        known = {name: value for name, value in other.items() if name in record.inputs}
        return replace(record, inputs={**record.inputs, **known})

    return change


def _cases() -> Iterator[tuple[str, Callable[[DecisionRecord], DecisionRecord]]]:
    yield "ranked", _decided(rank=1.0)
    yield "ranked", _given(share=0.123)
    yield "reordered", _decided(checksum=7)
    yield "made", _decided(deadline=1.0)
    yield "made", _given(ends=[])
    yield "slipped", _decided(promised=1.0)
    yield "gathered", _decided(seats=[])
    yield "released", _decided(checksum=7)


@pytest.mark.parametrize(("outcome", "change"), list(_cases()))
def test_a_row_that_was_tampered_with_is_found(
    outcome: str, change: Callable[[DecisionRecord], DecisionRecord]
) -> None:
    report, record = _replay_with(outcome, change)
    assert report.differences[0].sequence == record.sequence
    assert report.differences[0].logged != report.differences[0].replayed


# -- the rows stay few


def _busy_world() -> LoggedHistory:
    """All cells are in use, and one gang waits."""
    world = LoggedHistory()
    for index, vc in enumerate("aaaabbb"):
        world.submit(Asked(name=f"old-{index}", sizes=(8,), vc=vc, runs=90_000.0))
    world.work()
    world.submit(Asked(name="new", sizes=(8,) * 4))
    world.work()
    return world


async def _since(world: LoggedHistory, change: Callable[[], object]) -> list[str]:
    await world.log.flush()
    before = len(world.store.records)
    change()
    await world.log.flush()
    new = world.store.records[before:]
    return [record.outcome for record in new if record.kind == RowKind.ORDERING]


def test_a_row_that_cannot_be_encoded_does_not_stop_the_planner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = _busy_world()
    with patch.object(order_rows, "encode_rank", side_effect=ValueError("a bug")):
        world.submit(Asked(name="newer", sizes=(8,) * 4))
        world.work()
    assert "newer" in {facts.gang.name for facts, _ in world.planner.ranking.in_order()}
    assert "a row of the queue cannot be encoded" in caplog.messages


async def test_time_alone_writes_no_rank() -> None:
    world = _busy_world()
    world.refresh()
    assert await _since(world, lambda: world.advance(3600.0)) == []


async def test_recent_use_writes_one_row_however_many_gangs_wait() -> None:
    world = _busy_world()
    for index in range(20):
        world.submit(Asked(name=f"more-{index}", sizes=(8,) * 3))
    world.work()
    world.refresh()
    world.order.shares.add("alice", None, leaf_cell_seconds=1e6, at=world.now)
    assert await _since(world, world.refresh) == ["reordered"]


async def test_a_document_that_changes_no_level_writes_one_row_for_all() -> None:
    world = _busy_world()
    written = await _since(world, lambda: world.use_queues(BOOKED))
    assert written == ["reordered"]


# -- documents


@pytest.mark.parametrize("text", [FIRST, BOOKED])
def test_the_content_of_a_policy_has_all_that_the_order_depends_on(text: str) -> None:
    policy = read_policy(text)
    again = restore(order_content(policy.content))
    assert (again.queues, again.classes) == (policy.queues, policy.classes)
