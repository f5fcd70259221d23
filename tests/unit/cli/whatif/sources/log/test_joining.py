"""Submissions and runs become arrivals."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.whatif.sources.log.arrivals import ArrivalBuilder, Span, notes_of
from cli.whatif.sources.log.joined import join
from cli.whatif.sources.log.run_times import NOTHING_KNOWN_SECONDS, RunTimes
from cli.whatif.sources.log.runs import RecordedRun, as_past, of_facts, without_repeats
from cli.whatif.sources.log.submissions import Asked, read_submission, without_retries
from policy.submission import GangKey
from state.history.facts import Certainty, GangFacts
from tests.support.state.records import a_decision
from timemachine.model import Arrival

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_T = _NOON.timestamp()
_DETAILS = {"user": "alice", "group": "vision", "vc": "lab", "requestedClass": "prod"}
_INPUTS: dict[str, Any] = {
    "groups": ["staff"],
    "gangSize": 2,
    "leafType": "A100",
    "labels": {"cellgate.io/group": "vision"},
}


def _asked(at: float, gang: str = "a/bert", **told: Any) -> Asked:
    record = a_decision(
        gang,
        at=_NOON + timedelta(seconds=at),
        outcome=told.pop("outcome", "admitted"),
        details={**_DETAILS, "leafCount": 16},
        inputs=_INPUTS,
    )
    found = read_submission(record)
    assert found is not None
    return replace(found, **told)


def _run(at: float, gang: str = "a/bert", **told: Any) -> RecordedRun:
    fields: dict[str, Any] = {"run": f"{gang}-{at}", "sizes": (8, 8), "user": "alice", **told}
    for name in ("started", "ended"):
        if fields.get(name) is not None:
            fields[name] += _T
    return RecordedRun(gang=gang, asked=_T + at, **fields)


def _arrivals(
    asked: list[Asked], runs: list[RecordedRun], since: float = -1e6, until: float = 1e6
) -> tuple[list[Arrival], ArrivalBuilder]:
    span = Span(since=_T + since, until=_T + until)
    past = [one for one in map(as_past, runs) if one is not None]
    builder = ArrivalBuilder(span, RunTimes(past))
    return builder.build(join(without_retries(asked), without_repeats(runs))), builder


def test_a_gang_that_ran_is_known_from_both() -> None:
    (arrival,), builder = _arrivals(
        [_asked(0.4)], [_run(0.0, started=60.0, ended=160.0, outcome="succeeded", owner="uid")]
    )
    assert (arrival.gang, arrival.submitted) == (GangKey("a", "bert", "uid"), _T + 0.4)
    assert (arrival.run_seconds, arrival.is_predicted, arrival.is_counted) == (100.0, False, True)
    assert (arrival.user, arrival.groups, arrival.charged_group) == ("alice", ("staff",), "vision")
    assert (arrival.requested_class, arrival.vc, arrival.leaf_type) == ("prod", "lab", "A100")
    assert (arrival.sizes, arrival.labels) == ((8, 8), _INPUTS["labels"])
    assert builder.counts.waits == [60.0]
    assert list(notes_of(builder.counts)) == []


def test_a_gang_that_was_refused_is_played_with_a_predicted_run_time() -> None:
    runs = [
        _run(100.0 * n, gang=f"a/bert-{n}", started=100.0 * n, ended=100.0 * n + 50.0,
             outcome="succeeded", vc="lab")
        for n in range(8)
    ]  # fmt: skip
    found, builder = _arrivals([_asked(9e4, "a/bert-99", outcome="refused")], runs)
    arrival = found[-1]
    assert arrival.is_predicted
    assert arrival.run_seconds == pytest.approx(50.0)
    assert arrival.sizes == (8, 8)
    assert builder.counts.never_ran == 1


def test_of_a_run_without_a_submission_the_group_that_was_charged_is_known() -> None:
    (arrival,), _ = _arrivals([], [_run(0.0, group="vision")])
    assert (arrival.groups, arrival.charged_group) == (("vision",), None)


def test_what_the_members_request_is_the_request_of_the_gang() -> None:
    details = {**_DETAILS, "leafCount": 12}
    inputs = {"gangSize": 3, "cpuMillis": 1000, "gangMemoryBytes": 7, "memoryBytes": 2}
    found = read_submission(a_decision(details=details, inputs=inputs))
    assert found is not None
    assert (found.cpu_millis, found.memory_bytes) == (3000, 7)


@pytest.mark.parametrize("inputs", [{"isHelper": True}, {"held": {}}])
def test_a_later_member_of_a_gang_is_no_submission(inputs: dict[str, Any]) -> None:
    details = {**_DETAILS, "leafCount": 12}
    assert read_submission(a_decision(details=details, inputs=inputs)) is None


def test_without_any_run_an_hour_is_assumed() -> None:
    (arrival,), _ = _arrivals([_asked(0.0)], [])
    assert arrival.run_seconds == NOTHING_KNOWN_SECONDS


def test_the_expectation_of_the_owner_and_the_deadline_count() -> None:
    (arrival,), _ = _arrivals([], [_run(0.0, expected_seconds=600, limit_seconds=900)])
    assert arrival.run_seconds == pytest.approx(600.0)
    (arrival,), _ = _arrivals([], [_run(0.0, limit_seconds=900)])
    assert arrival.run_seconds == 900.0


def test_a_gang_that_goes_on_is_played_for_longer_than_it_has_run() -> None:
    (arrival,), builder = _arrivals([], [_run(0.0, started=0.0)], until=5000.0)
    assert arrival.is_predicted
    assert arrival.run_seconds >= 5000.0
    assert builder.counts.running == 1


def test_retries_of_a_refused_gang_are_one_gang() -> None:
    asked = [_asked(at, outcome="refused") for at in (0.0, 60.0, 300.0)]
    (one,) = without_retries(asked)
    assert (one.at, one.retries, one.is_refused) == (_T, 2, True)
    (one,) = without_retries([*asked, _asked(900.0)])
    assert (one.at, one.retries, one.is_refused) == (_T + 900.0, 3, False)
    assert len(without_retries([*asked, _asked(9000.0)])) == 2
    assert len(without_retries([*asked, _asked(301.0, "a/other")])) == 2


def test_a_gang_that_was_preempted_and_began_again_is_one_gang() -> None:
    runs = [
        _run(0.0, started=10.0, ended=100.0, outcome="preempted"),
        _run(130.0, started=200.0, ended=500.0, outcome="succeeded"),
    ]
    (arrival,), builder = _arrivals([_asked(0.0), _asked(130.0)], runs)
    assert (arrival.submitted, arrival.run_seconds) == (_T, 300.0)
    assert builder.counts.waits == [10.0]


def test_a_later_gang_of_the_same_name_is_another_one() -> None:
    runs = [
        _run(0.0, started=10.0, ended=100.0, outcome="succeeded"),
        _run(130.0, started=200.0, ended=500.0, outcome="preempted"),
        _run(9000.0, started=9000.0, ended=9100.0, outcome="succeeded"),
    ]
    found, builder = _arrivals([_asked(0.0), _asked(9000.0)], runs)
    assert [one.submitted - _T for one in found] == [0.0, 130.0, 9000.0]
    assert found[1].is_predicted
    assert builder.counts.cut == 1


def test_a_gang_that_ran_at_the_beginning_fills_its_cells() -> None:
    runs = [
        _run(-900.0, "a/over", started=-800.0, ended=-1.0, outcome="succeeded"),
        _run(-900.0, "a/ran", started=-800.0, ended=100.0, outcome="succeeded"),
        _run(-900.0, "a/waited", started=50.0, ended=100.0, outcome="succeeded"),
        _run(-900.0, "a/left", ended=-5.0, outcome="deleted"),
    ]
    found, builder = _arrivals([], runs, since=0.0)
    assert [(one.gang.name, one.submitted - _T, one.run_seconds) for one in found] == [
        ("ran", -800.0, 900.0),
        ("waited", 0.0, 50.0),
    ]
    assert not any(one.is_counted for one in found)
    assert (builder.counts.at_beginning, builder.counts.waits) == (2, [])


def test_what_was_submitted_after_the_end_is_not_played() -> None:
    found, _ = _arrivals([_asked(200.0)], [_run(200.0)], until=100.0)
    assert found == []


def test_what_is_not_known_is_told() -> None:
    asked = [
        _asked(0.0, "a/refused", outcome="refused"),
        _asked(1.0, "a/refused", outcome="refused"),
    ]
    runs = [
        _run(-10.0, "a/before", started=-9.0),
        _run(5.0, "a/cut", started=6.0, ended=7.0, outcome="evicted"),
    ]
    _, builder = _arrivals(asked, runs, since=0.0, until=100.0)
    assert [note.partition(";")[0] for note in notes_of(builder.counts)] == [
        "Gangs that never ran: 1",
        "Gangs that still ran at the end: 1",
        "Gangs that ended for other gangs or with their nodes, and did not begin again: 1",
        "Gangs that ran or waited at the beginning: 1",
        "Gangs that have no admission decision in the log: 2",
        "Gangs that were refused and submitted again: 1",
    ]


@pytest.mark.parametrize(
    "changed",
    [{"service": "extender"}, {"kind": "limits"}, {"details": _DETAILS}],
    ids=["other service", "other kind", "a pod that is invalid"],
)
def test_other_rows_are_no_submissions(changed: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"details": {**_DETAILS, "leafCount": 16}, **changed}
    assert read_submission(a_decision(**fields)) is None


def _facts(**told: Any) -> GangFacts:
    fields = {"asked_at": _NOON, "leaf_count": 12, "member_count": 3, **told}
    return GangFacts(run="r", gang="a/bert", **fields)


def _member(leaf_cells: int) -> dict[str, Any]:
    return {"leafCells": leaf_cells, "certainty": Certainty.NO_END, "stamp": "1"}


def test_the_sizes_of_members_are_those_of_pods_unless_some_were_replaced() -> None:
    sizes = [
        run.sizes
        for members in ({"a": 8, "b": 4, "c": 0}, {"a": 8, "b": 8, "c": 8}, {})
        if (run := of_facts(_facts(members={k: _member(v) for k, v in members.items()})))
    ]
    assert sizes == [(8, 4), (4, 4, 4), (4, 4, 4)]


def test_a_run_without_leaf_cells_is_not_played() -> None:
    assert of_facts(_facts(leaf_count=0)) is None
