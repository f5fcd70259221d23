"""The decision log with a spool: what is acknowledged survives, and what is not is counted."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from state.log.epoch_journal import EpochJournal, MissingRows, find_missing
from state.log.log import DecisionLog, LogSettings
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from state.log.spool.record_spool import RecordSpool
from state.log.spool.spool import Spool, SpoolSettings
from tests.support.eventually import eventually
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions

_IMPATIENT = LogSettings(
    first_retry_seconds=0.0001,
    longest_retry_seconds=0.001,
    drain_seconds=0.05,
    batch_size=4,
    spool_after_seconds=0.001,
    sync_seconds=0.001,
)


@pytest.fixture
def store() -> MemoryDecisions:
    return MemoryDecisions()


@contextmanager
def _spool(directory: Path, **settings: Any) -> Iterator[Spool]:
    spool = Spool(directory / "spool", SpoolSettings(**settings))
    try:
        yield spool
    finally:
        spool.close()


@asynccontextmanager
async def _running(log: DecisionLog) -> AsyncIterator[None]:
    task = asyncio.create_task(log.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def _gangs(count: int, first: int = 0) -> list[DecisionRecord]:
    return [a_decision(f"team-a/gang-{number}") for number in range(first, first + count)]


async def test_records_go_to_disk_while_the_store_is_away_and_come_back_in_order(
    store: MemoryDecisions, tmp_path: Path
) -> None:
    records = _gangs(20)
    with _spool(tmp_path) as spool:
        log = DecisionLog(store, _IMPATIENT, spool=spool)
        store.is_away = True
        async with _running(log):
            for record in records:
                log.append(record)
            await eventually(lambda: log.unacknowledged == 0 and spool.is_synced)
            assert (log.pending, log.acknowledged, log.spooled) == (20, 20, 20)
            store.is_away = False
            await eventually(lambda: log.pending == 0)
        assert (log.written, log.dropped) == (20, 0)
    assert store.records == records


async def test_what_a_process_leaves_on_disk_the_next_one_writes_first(
    store: MemoryDecisions, tmp_path: Path
) -> None:
    records = _gangs(10)
    store.is_away = True
    with _spool(tmp_path) as spool:
        async with _running(log := DecisionLog(store, _IMPATIENT, spool=spool)):
            await asyncio.sleep(0)
            for record in records[:7]:
                log.append(record)
    store.is_away = False
    with _spool(tmp_path) as spool:
        log = DecisionLog(store, _IMPATIENT, spool=spool)
        assert (log.pending, log.lost) == (7, 0)
        for record in records[7:]:
            log.append(record)
        await log.flush()
        assert (log.written, log.pending) == (10, 0)
    assert store.records == records


async def test_a_store_that_is_there_needs_no_spool(store: MemoryDecisions, tmp_path: Path) -> None:
    with _spool(tmp_path) as spool:
        slow = replace(_IMPATIENT, spool_after_seconds=30)
        async with _running(log := DecisionLog(store, slow, spool=spool)):
            for record in _gangs(20):
                log.append(record)
            await eventually(lambda: log.written == 20)
        assert log.spooled == 0


async def test_a_store_that_hangs_does_not_keep_records_from_the_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = _PausedStore()
    with _spool(tmp_path) as spool:
        async with _running(log := DecisionLog(store, _IMPATIENT, spool=spool)):
            for record in _gangs(5):
                log.append(record)
            await eventually(lambda: log.unacknowledged == 0)
            store.go_on.set()
            await eventually(lambda: log.pending == 0)
        # The batch that hung was written again from the spool, stored once and counted once.
        assert (log.written, len(store.records)) == (5, 5)


async def test_a_full_spool_keeps_the_oldest_and_memory_the_next(
    store: MemoryDecisions, tmp_path: Path
) -> None:
    records = _gangs(30)
    store.is_away = True
    settings = replace(_IMPATIENT, capacity=10)
    with _spool(tmp_path, capacity_bytes=2000) as spool:
        async with _running(log := DecisionLog(store, settings, spool=spool)):
            for record in records:
                log.append(record)
                await eventually(lambda: spool.count > 0)
            await eventually(lambda: log.dropped > 0)
            pending = log.pending
            assert 10 < pending < 30
            assert log.dropped == 30 - pending
            store.is_away = False
            await eventually(lambda: log.pending == 0)
        assert log.written == pending
    assert store.records == records[:pending]


async def test_a_disk_that_fails_leaves_the_log_to_memory(
    store: MemoryDecisions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Sequence[bytes]) -> int:
        raise OSError(28, "No space left on device")

    with _spool(tmp_path) as spool:
        monkeypatch.setattr(spool, "append", fail)
        store.is_away = True
        async with _running(log := DecisionLog(store, _IMPATIENT, spool=spool)):
            for record in _gangs(5):
                log.append(record)
            await eventually(lambda: "decisions stay in memory" in caplog.text)
            assert log.unacknowledged == 5
            store.is_away = False
            await eventually(lambda: log.pending == 0)
    assert len(store.records) == 5
    assert caplog.text.count("decisions stay in memory") == 1


async def test_a_record_that_can_never_be_stored_does_not_clog_the_spool(
    store: MemoryDecisions, tmp_path: Path
) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    good = _gangs(6)
    store.is_away = True
    with _spool(tmp_path) as spool:
        async with _running(log := DecisionLog(store, _IMPATIENT, spool=spool)):
            for record in (*good[:3], a_decision(details=endless), *good[3:]):
                log.append(record)
            await eventually(lambda: log.unacknowledged == 0)
            store.is_away = False
            await eventually(lambda: log.pending == 0)
        assert (log.written, log.dropped) == (6, 1)
    assert store.records == good


async def test_what_another_version_left_is_counted_and_skipped(
    store: MemoryDecisions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _spool(tmp_path) as spool:
        spool.append([b"[99]", b"{}"])
        log = DecisionLog(store, _IMPATIENT, spool=spool)
        log.append(a_decision())
        await log.flush()
        assert (log.written, spool.count) == (1, 0)
        assert "decision on disk unreadable" in caplog.text


async def test_nothing_to_spool_does_not_mean_that_the_spool_is_full(tmp_path: Path) -> None:
    with _spool(tmp_path) as spool:
        records = RecordSpool(spool)
        assert (await records.append([])).kept == 0
        assert (await records.append(_gangs(2))).kept == 2


async def test_a_removed_spool_does_not_stop_the_log(
    store: MemoryDecisions, tmp_path: Path
) -> None:
    with _spool(tmp_path) as spool:
        log = DecisionLog(store, _IMPATIENT, spool=spool)
        store.is_away = True
        async with _running(log):
            for record in _gangs(5):
                log.append(record)
            await eventually(lambda: log.unacknowledged == 0)
            for path in spool.directory.glob("*.spool"):
                path.unlink()
            store.is_away = False
            await eventually(lambda: log.pending == 0)
            log.append(a_decision("team-a/later"))
            await eventually(lambda: log.pending == 0)
        assert store.records[-1].subject == "team-a/later"
        # A batch that was read before is written all the same.
        assert len(store.records) + log.dropped_by_reason["unreadable"] == 6


async def test_what_a_killed_process_had_in_memory_is_counted(
    store: MemoryDecisions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _spool(tmp_path) as spool:
        log = DecisionLog(store, spool=spool)
        for record in _gangs(3):
            log.append(record)
    with _spool(tmp_path) as spool:
        assert DecisionLog(store, spool=spool).lost == 3
    assert "decisions lost by a killed process" in caplog.text


async def test_a_deposed_leader_is_refused_and_the_next_term_is_not(
    store: MemoryDecisions, caplog: pytest.LogCaptureFixture
) -> None:
    new_leader = DecisionLog(store)
    EpochJournal(new_leader, epoch=6).append(a_decision("a/new"))
    await new_leader.flush()
    old_leader = DecisionLog(store)
    old, again = EpochJournal(old_leader, epoch=5), EpochJournal(old_leader, epoch=7)
    for journal in (old, old, again):
        journal.append(a_decision("a/old" if journal is old else "a/again"))
    await old_leader.flush()
    assert (old_leader.written, old_leader.dropped) == (1, 2)
    assert old_leader.dropped_by_reason["deposed"] == 2
    assert [record.subject for record in store.records] == ["a/new", "a/again"]
    [line] = [line for line in caplog.records if line.message.startswith("decisions of a deposed")]
    assert (line.levelname, line.__dict__["epoch"]) == ("ERROR", 5)


async def test_a_journal_numbers_rows_without_gaps_and_keeps_a_document_once(
    store: MemoryDecisions,
) -> None:
    log = DecisionLog(store)
    journal = EpochJournal(log, epoch=3)
    document = LoggedDocument(kind="rules", content="rules: []")
    for _ in range(2):
        journal.observe_document(a_decision("rules"), document)
    for number in range(20):
        journal.observe_node(a_decision(f"n{number}", kind=RowKind.NODE), is_gone=False)
    journal.observe_node(a_decision("n7", kind=RowKind.NODE), is_gone=True)
    candidates = journal.encode_candidates({f"n{number}" for number in range(20) if number != 7})
    journal.append(a_decision(inputs={"candidates": candidates}))
    await log.flush()
    rows = await store.of_epoch("webhook", epoch=3)
    assert [row.sequence for row in rows] == list(range(1, 25))
    assert {row.inputs.get("document") for row in rows[:2]} == {document.hash}
    assert store.documents == {document.hash: document}
    assert rows[-1].inputs == {"candidates": "all"}
    assert await log.recent(100) == [rows[-1]]


def test_missing_rows_are_found() -> None:
    assert find_missing([1, 2, 3]) == []
    assert find_missing([2, 3, 7, 8, 10]) == [
        MissingRows(first=1, last=1),
        MissingRows(first=4, last=6),
        MissingRows(first=9, last=9),
    ]
    assert find_missing([7, 9], first=7) == [MissingRows(first=8, last=8)]


class _PausedStore(MemoryDecisions):
    """Hangs until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        await self.go_on.wait()
        return await super().insert(records)
