"""Epochs, observations, documents and history in the log, on Postgres and on its twin in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from state.database.database import Database
from state.history.facts import GangFacts
from state.history.runs import Hours, PostgresHistory
from state.log.candidates import KnownNodes
from state.log.epoch_journal import EpochJournal, find_missing
from state.log.log import DecisionLog
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from tests.support.state.records import a_decision
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stores:
    decisions: MemoryDecisions | PostgresDecisions
    history: MemoryHistory | PostgresHistory


@pytest.fixture(params=["memory", "database", "stock_database"])
def stores(request: pytest.FixtureRequest) -> Stores:
    if request.param == "memory":
        decisions = MemoryDecisions()
        return Stores(decisions, MemoryHistory(decisions.history))
    pool = request.getfixturevalue(request.param).pool
    return Stores(PostgresDecisions(pool), PostgresHistory(pool))


def _rows(epoch: int, numbers: Sequence[int], service: str = "extender") -> list[DecisionRecord]:
    return [
        a_decision(f"a/{number}", service=service, epoch=epoch, sequence=number)
        for number in numbers
    ]


async def test_rows_of_an_older_epoch_decided_after_the_takeover_are_refused(
    stores: Stores,
) -> None:
    new, old = _rows(6, [1, 2]), _rows(5, [1, 2, 3])
    assert await stores.decisions.insert(new) == []
    assert await stores.decisions.insert(old) == old
    assert await stores.decisions.of_epoch("extender", epoch=5) == []
    assert await stores.decisions.of_epoch("extender", epoch=6) == new


async def test_what_a_leader_decided_before_it_was_deposed_is_taken_however_late(
    stores: Stores,
) -> None:
    document = LoggedDocument(kind="rules", content="rules: []")
    await stores.decisions.insert([replace(row, at=_NOON) for row in _rows(6, [1])])
    await stores.decisions.insert([replace(row, at=_NOON + _HOUR) for row in _rows(8, [1])])
    spooled = [
        replace(row, at=_NOON + hours * _HOUR, facts=_facts(f"r{hours}"), documents=(document,))
        for row, hours in zip(_rows(5, [1, 2, 3]), (-2, -1, 0), strict=True)
    ]
    assert await stores.decisions.insert(spooled) == spooled[2:]
    found = await stores.decisions.of_epoch("extender", epoch=5)
    assert [row.sequence for row in found] == [1, 2]
    runs = await stores.history.of_gang("team-a/bert", 10)
    assert {run.run for run in runs} == {"r-2", "r-1"}
    # Epoch 7 never wrote, and what it decided before epoch 8 began stands beside that of epoch 6.
    late = [replace(row, at=_NOON + 0.5 * _HOUR) for row in _rows(7, [1])]
    assert await stores.decisions.insert(late) == []


async def test_a_term_began_with_its_earliest_row_in_whatever_order_they_come(
    stores: Stores,
) -> None:
    for hours in (2, 1):
        await stores.decisions.insert([replace(_rows(6, [hours])[0], at=_NOON + hours * _HOUR)])
    [old] = [replace(row, at=_NOON + 1.5 * _HOUR) for row in _rows(5, [1])]
    assert await stores.decisions.insert([old]) == [old]


async def test_a_batch_that_goes_back_an_epoch_loses_only_what_came_after_the_takeover(
    stores: Stores,
) -> None:
    new, old = _rows(6, [1]), _rows(5, [9])
    assert await stores.decisions.insert([*new, *old]) == old
    assert await stores.decisions.recent(10) == new


async def test_the_same_and_a_newer_epoch_are_taken(stores: Stores) -> None:
    rows = [*_rows(5, [1]), *_rows(5, [2]), *_rows(6, [1])]
    for row in rows:
        await stores.decisions.insert([row])
    assert await stores.decisions.recent(10) == rows[::-1]


async def test_services_have_epochs_of_their_own_and_some_have_none(stores: Stores) -> None:
    rows = [*_rows(6, [1]), *_rows(2, [1], service="webhook"), a_decision(service="extender")]
    await stores.decisions.insert(rows)
    assert await stores.decisions.recent(10) == rows[::-1]


async def test_a_repeated_batch_of_an_epoch_that_was_overtaken_is_refused_but_stays_stored(
    stores: Stores,
) -> None:
    old = _rows(5, [1])
    await stores.decisions.insert(old)
    await stores.decisions.insert(_rows(6, [1]))
    assert await stores.decisions.insert(old) == old
    assert await stores.decisions.of_epoch("extender", epoch=5) == old


async def test_an_epoch_is_read_in_its_order_from_any_row_on(stores: Stores) -> None:
    rows = _rows(1, [1, 2, 3, 5])
    for row in (rows[2], rows[0], rows[3], rows[1]):
        await stores.decisions.insert([row])
    assert await stores.decisions.of_epoch("extender", epoch=1) == rows
    assert await stores.decisions.of_epoch("extender", epoch=1, first=2, limit=2) == rows[1:3]
    assert await stores.decisions.of_epoch("webhook", epoch=1) == []


async def test_a_replay_learns_from_the_rows_what_was_offered_each_time(stores: Stores) -> None:
    dice = Random(11)
    log = DecisionLog(stores.decisions)
    journal = EpochJournal(log, epoch=4)
    offers: list[set[str]] = []
    names = [f"node-{number:03}" for number in range(200)]
    for _ in range(300):
        name = dice.choice(names)
        if dice.random() < 0.6:
            is_gone = dice.random() < 0.2
            row = a_decision(name, service="extender", kind=RowKind.NODE, inputs={"gone": is_gone})
            journal.observe_node(row, is_gone=is_gone)
        else:
            offers.append(set(dice.sample(names, dice.randrange(200))))
            candidates = journal.encode_candidates(offers[-1])
            journal.append(a_decision(service="extender", inputs={"candidates": candidates}))
    await log.flush()

    rows = await stores.decisions.of_epoch("extender", epoch=4)
    assert find_missing(row.sequence or 0 for row in rows) == []
    known, replayed = KnownNodes(), []
    for row in rows:
        if row.kind == RowKind.NODE:
            (known.forget if row.inputs["gone"] else known.observe)(row.subject)
        else:
            replayed.append(known.decode(row.inputs["candidates"]))
    assert replayed == offers


async def test_observations_are_there_for_those_who_ask_for_them(stores: Stores) -> None:
    node = a_decision("n1", kind=RowKind.NODE, inputs={"leafCount": 8, "healthy": True})
    decision = a_decision("n1", inputs={"candidates": {"but": ["n2"]}})
    await stores.decisions.insert([node, decision])
    assert await stores.decisions.recent(10) == [decision]
    assert await stores.decisions.recent(10, subject="n1") == [decision]
    assert await stores.decisions.recent(10, with_observations=True) == [decision, node]
    assert await stores.decisions.recent(10, subject="n1", with_observations=True) == [
        decision,
        node,
    ]


async def test_what_happened_to_a_pod_is_told_newest_first(stores: Stores) -> None:
    rows = [
        a_decision(pod_uid="8a7b", at=_NOON + number * _HOUR, kind=kind)
        for number, kind in enumerate(["pod", "placement", "bind"])
    ]
    await stores.decisions.insert([rows[1], rows[2], a_decision(pod_uid="other"), rows[0]])
    assert await stores.decisions.of_pod("8a7b", 10) == rows[::-1]
    assert await stores.decisions.of_pod("8a7b", 1) == [rows[2]]


async def test_a_document_is_kept_once(stores: Stores) -> None:
    document = LoggedDocument(kind="rules", content="rules: []  # ü")
    row = a_decision("rules", inputs={"document": document.hash}, documents=(document,))
    await stores.decisions.insert([row, a_decision(documents=(document,))])
    await stores.decisions.insert([a_decision(documents=(document,))])
    assert await stores.decisions.document(document.hash) == document
    assert await stores.decisions.document("unknown") is None
    assert (await stores.decisions.recent(10, subject="rules"))[0].documents == ()


def _facts(run: str = "r1", **facts: object) -> GangFacts:
    return GangFacts(run=run, gang="team-a/bert", **facts)  # type: ignore[arg-type]


_ASKED = _facts(
    user_name="alice", group_name="vision", vc="lab", requested_class="prod",
    granted_class="test", leaf_type="A100", leaf_count=8, member_count=2, asked_at=_NOON,
)  # fmt: skip
_BOUND = _facts(started_at=_NOON + _HOUR, nodes=("n2",))
_BOUND_TOO = _facts(started_at=_NOON + 2 * _HOUR, nodes=("n1", "n2"))
_ENDED = _facts(ended_at=_NOON + 4 * _HOUR, outcome="preempted", preempted_for="team-b/gpt",
                reason="borrowed cells")  # fmt: skip
_WHOLE = _facts(
    user_name="alice", group_name="vision", vc="lab", requested_class="prod",
    granted_class="test", leaf_type="A100", leaf_count=8, member_count=2, asked_at=_NOON,
    started_at=_NOON + _HOUR, ended_at=_NOON + 4 * _HOUR, nodes=("n1", "n2"),
    outcome="preempted", preempted_for="team-b/gpt", reason="borrowed cells",
)  # fmt: skip


@pytest.mark.parametrize(
    "batches",
    [
        [[_ASKED], [_BOUND], [_BOUND_TOO], [_ENDED]],
        [[_ENDED], [_BOUND_TOO], [_ASKED, _BOUND]],
        [[_ASKED, _BOUND, _BOUND_TOO, _ENDED], [_BOUND_TOO], [_ASKED]],
    ],
    ids=["in order", "backwards", "repeated"],
)
async def test_a_run_is_known_whole_in_whatever_order_it_was_told(
    stores: Stores, batches: list[list[GangFacts]]
) -> None:
    for batch in batches:
        await stores.decisions.insert([a_decision(facts=fact) for fact in batch])
    assert await stores.history.of_gang("team-a/bert", 10) == [_WHOLE]
    assert await stores.history.of_user("alice", 10) == [_WHOLE]
    assert await stores.history.of_user("bob", 10) == []


async def test_differing_words_are_settled_alike(stores: Stores) -> None:
    words = ["b", "B", "ä", "z", "aa", "a\0", "\ud800"]
    for word in words:
        await stores.decisions.insert([a_decision(facts=_facts(reason=word, nodes=(word,)))])
    [run] = await stores.history.of_gang("team-a/bert", 10)
    assert run.reason == "ä"
    assert run.nodes == ("?", "B", "aa", "a\ufffd", "b", "z", "ä")


async def test_a_run_that_ends_before_it_started_is_kept(stores: Stores) -> None:
    facts = _facts(started_at=_NOON, ended_at=_NOON - _HOUR, leaf_count=1)
    await stores.decisions.insert([a_decision(facts=facts)])
    assert await stores.history.of_gang("team-a/bert", 10) == [facts]
    assert await stores.history.hours_between(_NOON - 9 * _HOUR, _NOON + 9 * _HOUR) == []


async def test_hours_count_what_lies_between_two_moments(stores: Stores) -> None:
    def ran(run: str, user: str, start: float, end: float | None) -> DecisionRecord:
        return a_decision(
            facts=_facts(
                run,
                user_name=user,
                vc="lab",
                leaf_count=4,
                started_at=_NOON + start * _HOUR,
                ended_at=None if end is None else _NOON + end * _HOUR,
            )
        )

    await stores.decisions.insert(
        [
            ran("inside", "alice", 1, 2.5),
            ran("across", "alice", -5, 0.5),
            ran("before", "alice", -5, 0),
            ran("after", "alice", 3, 4),
            ran("around", "bob", -5, 9),
            ran("running", "carol", 2, None),
            a_decision(facts=_facts("waiting", user_name="dave", leaf_count=4, asked_at=_NOON)),
        ]
    )
    assert await stores.history.hours_between(_NOON, _NOON + 3 * _HOUR) == [
        _hours("alice", 8.0, gangs=2),
        _hours("bob", 12.0, gangs=1),
        _hours("carol", 4.0, gangs=1),
    ]


@pytest.mark.parametrize(
    ("since", "until"),
    [(-30, 40), (-12, 36), (-12, 40), (-30, 36), (-12, 12), (0, 0.5), (-100, -60), (12, 12.5)],
)
async def test_hours_between_moments_of_different_days_are_exact(
    stores: Stores, since: float, until: float
) -> None:
    """Midnight is at -12, 12 and 36 hours from noon."""
    spans = [(-40, -31), (-31, -29), (-13, -12), (-12, 12), (-50, 50), (11, 13), (30, 36), (36, 39),
             (39, 41), (-30, 40), (1, 2)]  # fmt: skip
    await stores.decisions.insert(
        [
            a_decision(
                facts=_facts(
                    f"{start} to {end}",
                    user_name=f"user-{number}",
                    vc="lab",
                    leaf_count=2,
                    started_at=_NOON + start * _HOUR,
                    ended_at=_NOON + end * _HOUR,
                )
            )
            for number, (start, end) in enumerate(spans)
        ]
    )
    found = await stores.history.hours_between(_NOON + since * _HOUR, _NOON + until * _HOUR)
    told = {(hours.user_name, hours.leaf_cell_hours, hours.gangs) for hours in found}
    assert told == {
        (f"user-{number}", 2.0 * (min(end, until) - max(start, since)), 1)
        for number, (start, end) in enumerate(spans)
        if min(end, until) > max(start, since)
    }


async def test_hours_of_days_follow_what_is_learnt_later(stores: Stores) -> None:
    midnight = _NOON + 12 * _HOUR
    facts = [
        _facts("r1", user_name="alice", vc="lab", started_at=midnight - 2 * _HOUR),
        _facts("r1", leaf_count=4),
        _facts("r1", ended_at=midnight + _HOUR),
        _facts("r1", ended_at=midnight + _HOUR),  # told twice
        _facts("r1", started_at=midnight - 3 * _HOUR),  # it had started earlier
    ]
    for fact in facts:
        await stores.decisions.insert([a_decision(facts=fact)])
    first, second = _NOON.date(), midnight.date()
    assert await stores.history.hours_of_days(first, first) == [_hours("alice", 12.0, gangs=0)]
    assert await stores.history.hours_of_days(second, second) == [_hours("alice", 4.0, gangs=1)]
    assert await stores.history.hours_of_days(first, second) == [_hours("alice", 16.0, gangs=1)]
    await stores.decisions.insert([a_decision(facts=_facts("r1", user_name="bob"))])
    assert await stores.history.hours_of_days(first, second) == [_hours("bob", 16.0, gangs=1)]


async def test_an_empty_name_is_none_however_hours_are_asked_for(stores: Stores) -> None:
    ran = _facts(
        user_name="", vc="lab", leaf_count=1, started_at=_NOON, ended_at=_NOON + 48 * _HOUR
    )
    await stores.decisions.insert([a_decision(facts=ran)])
    day = (_NOON + 24 * _HOUR).date()
    assert await stores.history.hours_of_days(day, day) == [_hours(None, 24.0, gangs=0)]
    between = await stores.history.hours_between(_NOON, _NOON + 48 * _HOUR)
    assert between == [_hours(None, 48.0, gangs=1)]


def _hours(user: str | None, hours: float, *, gangs: int) -> Hours:
    return Hours(
        user_name=user,
        group_name=None,
        vc="lab",
        class_name=None,
        leaf_cell_hours=hours,
        gangs=gangs,
    )


async def test_random_facts_mean_the_same_to_both(database: Database) -> None:
    dice = Random(7)
    twin = MemoryDecisions()
    postgres = PostgresDecisions(database.pool)
    for _ in range(40):
        batch = [a_decision(facts=_random_facts(dice)) for _ in range(dice.randint(1, 6))]
        await twin.insert(batch)
        await postgres.insert(batch)
    assert len(twin.history) == 5
    for run in range(5):
        asked = (f"a/{run}", 10)
        found = await PostgresHistory(database.pool).of_gang(*asked)
        assert found == await MemoryHistory(twin.history).of_gang(*asked)
    span = (_NOON - 100 * _HOUR, _NOON + 100 * _HOUR)
    hours = await MemoryHistory(twin.history).hours_between(*span)
    assert hours
    assert await PostgresHistory(database.pool).hours_between(*span) == hours
    for first, last in ((-3, 3), (-1, 0), (1, 1)):
        days = ((_NOON + first * 24 * _HOUR).date(), (_NOON + last * 24 * _HOUR).date())
        told = await PostgresHistory(database.pool).hours_of_days(*days)
        assert told == await MemoryHistory(twin.history).hours_of_days(*days)


def _random_facts(dice: Random) -> GangFacts:
    """Facts with many holes, which contradict each other."""
    run = dice.randrange(5)
    values: dict[str, Any] = {
        "user_name": dice.choice(["alice", "Bob", "åke", "", "a b"]),
        "granted_class": dice.choice(["prod", "test"]),
        "leaf_count": dice.randrange(64),
        "asked_at": _NOON + dice.randrange(-50, 50) * _HOUR,
        "started_at": _NOON + dice.randrange(-50, 50) * _HOUR,
        "ended_at": _NOON + dice.randrange(-50, 50) * _HOUR,
        "nodes": tuple(dice.sample(["n1", "n10", "n2", "N3", "ö"], dice.randrange(5))),
        "outcome": dice.choice(["failed", "succeeded"]),
    }
    known = {name: value for name, value in values.items() if dice.random() < 0.3}
    return GangFacts(run=str(run), gang=f"a/{run}", **known)
