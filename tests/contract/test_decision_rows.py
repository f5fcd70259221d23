"""Epochs, observations and documents in the log, on Postgres and on its twin in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

from state.history.facts import GangFacts
from state.history.runs import RunFilter
from state.log.candidates import KnownNodes
from state.log.epoch_journal import EpochJournal, find_missing
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from tests.support.state.histories import HOUR, NOON, Stores, stores
from tests.support.state.records import a_decision

__all__ = ["stores"]


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
    await stores.decisions.insert([replace(row, at=NOON) for row in _rows(6, [1])])
    await stores.decisions.insert([replace(row, at=NOON + HOUR) for row in _rows(8, [1])])
    spooled = [
        replace(row, at=NOON + hours * HOUR, facts=_facts(f"r{hours}"), documents=(document,))
        for row, hours in zip(_rows(5, [1, 2, 3]), (-2, -1, 0), strict=True)
    ]
    assert await stores.decisions.insert(spooled) == spooled[2:]
    found = await stores.decisions.of_epoch("extender", epoch=5)
    assert [row.sequence for row in found] == [1, 2]
    runs = await stores.history.find(RunFilter(gang="team-a/bert"), 10)
    assert {run.facts.run for run in runs} == {"r-2", "r-1"}
    # Epoch 7 never wrote, and what it decided before epoch 8 began stands beside that of epoch 6.
    late = [replace(row, at=NOON + 0.5 * HOUR) for row in _rows(7, [1])]
    assert await stores.decisions.insert(late) == []


async def test_a_term_began_with_its_earliest_row_in_whatever_order_they_come(
    stores: Stores,
) -> None:
    for hours in (2, 1):
        await stores.decisions.insert([replace(_rows(6, [hours])[0], at=NOON + hours * HOUR)])
    [old] = [replace(row, at=NOON + 1.5 * HOUR) for row in _rows(5, [1])]
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
        a_decision(pod_uid="8a7b", at=NOON + number * HOUR, kind=kind)
        for number, kind in enumerate(["pod", "placement", "bind"])
    ]
    await stores.decisions.insert([rows[1], rows[2], a_decision(pod_uid="other"), rows[0]])
    assert await stores.decisions.of_pod("8a7b", 10) == rows[::-1]
    assert await stores.decisions.of_pod("8a7b", 1) == [rows[2]]


async def test_rows_of_one_kind_about_some_subjects_are_found(stores: Stores) -> None:
    rows = [
        a_decision(subject, at=NOON + number * HOUR, kind=kind)
        for number, (subject, kind) in enumerate(
            [("a", "cancel"), ("b", "cancel"), ("a", "hold"), ("c", "cancel"), ("a", "cancel")]
        )
    ]
    await stores.decisions.insert(rows)

    async def cancels(
        *subjects: str, until: datetime = NOON + 4 * HOUR, limit: int = 9
    ) -> list[DecisionRecord]:
        log = stores.decisions
        return await log.of_kind("cancel", subjects, since=NOON, until=until, limit=limit)

    assert await cancels("a", "b") == [rows[4], rows[1], rows[0]]
    assert await cancels("a", "b", limit=1) == [rows[4]]
    assert await cancels("a", until=NOON) == [rows[0]]
    assert await cancels() == []


async def test_a_document_is_kept_once(stores: Stores) -> None:
    document = LoggedDocument(kind="rules", content="rules: []  # ü")
    row = a_decision("rules", inputs={"document": document.hash}, documents=(document,))
    await stores.decisions.insert([row, a_decision(documents=(document,))])
    await stores.decisions.insert([a_decision(documents=(document,))])
    assert await stores.decisions.document(document.hash) == document
    assert await stores.decisions.document("unknown") is None
    assert (await stores.decisions.recent(10, subject="rules"))[0].documents == ()


def _facts(run: str) -> GangFacts:
    return GangFacts(run=run, gang="team-a/bert", asked_at=NOON)
