"""An epoch decided again from its rows alone."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from extender.cluster.replay import Report, replay_epoch
from tests.support.extender.mixed_load import MixedLoad
from tests.support.policy.cluster_texts import derived_text, hived_text


def _loads() -> Iterator[tuple[int, str]]:
    for seed in range(3):
        yield seed, hived_text(racks=2, nodes=4, a=4, b=3)
        yield seed, derived_text(a=4, b=3)
    # A late member for whom nothing can be reserved until its victims have ended.
    yield 211, derived_text(a=4, b=3)


@pytest.mark.parametrize("seed", range(6))
async def test_changes_of_the_document_that_take_many_steps_are_decided_alike(seed: int) -> None:
    texts = [derived_text(a=4, b=3), derived_text(a=2, b=5), hived_text(racks=2, nodes=4, a=4, b=3)]
    load = MixedLoad(seed, texts[seed % 2], changes_to=texts[1 + seed % 2], has_grace=True)
    assert {"changing", "advanced", "placed"} <= await _decide_alike(load)


async def test_a_change_is_completed_also_by_a_version_that_needs_more_steps_for_it() -> None:
    load = MixedLoad(1, derived_text(a=4, b=3))
    for _ in range(200):
        load.step()
    await load.log.flush()
    for index, row in enumerate(load.store.records):
        if row.outcome == "advanced":
            load.store.records[index] = replace(row, inputs={**row.inputs, "steps": 1})
    report = await replay_epoch(load.store, epoch=1)
    assert report.decisions > 20
    assert report.is_identical


@pytest.mark.parametrize(("seed", "text"), list(_loads()))
async def test_mixed_load_with_a_crash_in_it_is_decided_alike(seed: int, text: str) -> None:
    kinds = await _decide_alike(MixedLoad(seed, text))
    assert {"placed", "no-room", "runs", "ended", "found", "recovered"} <= kinds


@pytest.mark.parametrize("seed", range(3))
async def test_who_was_ending_is_known_from_the_log_also_after_a_crash(seed: int) -> None:
    load = MixedLoad(seed, derived_text(a=4, b=3), has_grace=True)
    assert {"ending", "overdue"} <= await _decide_alike(load)
    for epoch in (1, 2):
        rows = [row for row in load.store.records if row.epoch == epoch]
        told = [row.pod_uid for row in rows if row.outcome == "ending"]
        assert told
        assert len({*told}) == len(told), "told again, nothing is written down"


@pytest.mark.parametrize("seed", range(2))
async def test_what_nodes_lack_beside_leaf_cells_is_part_of_the_rows(seed: int) -> None:
    kinds = await _decide_alike(MixedLoad(seed, derived_text(a=4, b=3), is_short=True))
    assert "lacks-resources" in kinds


@pytest.mark.parametrize("seed", range(4))
async def test_minimum_runs_and_costs_are_part_of_the_rows(seed: int) -> None:
    texts = [derived_text(a=4, b=3), hived_text(racks=2, nodes=4, a=4, b=3)]
    load = MixedLoad(seed, texts[seed % 2], has_grace=True, is_polite=True)
    kinds = await _decide_alike(load)
    assert {"minimum-run", "placed", "preempting"} <= kinds


async def _decide_alike(load: MixedLoad) -> set[str]:
    """Play and replay; returns what the rows are about."""
    for step in range(400):
        if step == 250:
            load.start()
        load.step()
    await load.log.flush()

    reports = [await replay_epoch(load.store, epoch=epoch) for epoch in (1, 2)]
    assert [report.differences for report in reports] == [[], []]
    assert all(report.is_identical for report in reports)
    assert sum(report.rows for report in reports) == len(load.store.records)
    assert sum(report.decisions for report in reports) > 40
    return {record.outcome for record in load.store.records}


async def replay_with(outcome: str, change: Callable[[dict[str, Any]], None]) -> Report:
    """Replay an epoch in which the row of one decision was changed."""
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=4, b=3))
    for _ in range(200):
        load.step()
    await load.log.flush()
    index, record = next(
        (index, record)
        for index, record in enumerate(load.store.records)
        if record.details.get("decision", {}).get("is") == outcome
    )
    decision = deepcopy(record.details["decision"])
    change(decision)
    load.store.records[index] = replace(record, details={"decision": decision})
    report = await replay_epoch(load.store, epoch=1)
    assert all(one.sequence == record.sequence for one in report.differences)
    return report


async def test_a_decision_that_was_tampered_with_is_found() -> None:
    report = await replay_with("place", lambda row: row.update(leafCells=[99]))
    (difference,) = report.differences
    assert difference.logged["leafCells"] == [99]


def without_arguments(row: dict[str, Any]) -> None:
    """The row as it was written before reasons had arguments."""
    del row["arguments"], row["wording"]
    row["reason"] = "said in other words"


def of_another_wording(row: dict[str, Any]) -> None:
    row.update(wording=row["wording"] + 1, reason="said in other words")


def of_a_wording_with_fewer_arguments(row: dict[str, Any]) -> None:
    of_another_wording(row)
    del row["arguments"]["gang"]


@pytest.mark.parametrize("outcome", ["wait", "reject", "preempt"])
@pytest.mark.parametrize(
    "change", [without_arguments, of_another_wording, of_a_wording_with_fewer_arguments]
)
async def test_a_row_in_other_words_is_no_difference(
    outcome: str, change: Callable[[dict[str, Any]], None]
) -> None:
    report = await replay_with(outcome, change)
    assert report.is_identical


def another_text(row: dict[str, Any]) -> None:
    row["reason"] = "said in other words"


def another_argument(row: dict[str, Any]) -> None:
    of_another_wording(row)
    row["arguments"]["gang"] = "lab/other"


def another_code(row: dict[str, Any]) -> None:
    without_arguments(row)
    row["code"] = "bad-cells"


def another_outcome(row: dict[str, Any]) -> None:
    without_arguments(row)
    row["is"] = "place"


@pytest.mark.parametrize("outcome", ["wait", "reject", "preempt"])
@pytest.mark.parametrize("change", [another_text, another_argument, another_code, another_outcome])
async def test_another_text_of_the_same_wording_and_another_reason_are_differences(
    outcome: str, change: Callable[[dict[str, Any]], None]
) -> None:
    report = await replay_with(outcome, change)
    assert len(report.differences) == 1


async def test_other_victims_are_a_difference_under_any_wording() -> None:
    def change(row: dict[str, Any]) -> None:
        without_arguments(row)
        row["victims"] = ["lab/somebody-else"]

    report = await replay_with("preempt", change)
    assert len(report.differences) == 1


async def test_a_lost_row_is_a_hole() -> None:
    load = MixedLoad(1, hived_text(racks=2, nodes=4, a=4, b=3))
    await load.log.flush()
    del load.store.records[3]

    report = await replay_epoch(load.store, epoch=1)
    assert not report.is_identical
    assert str(report.missing[0]) == "row 4 is missing"
