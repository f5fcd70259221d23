"""The decision log when its store comes and goes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from policy.errors import BackendError
from state.log.log import DecisionLog, LogSettings
from state.log.records import DecisionRecord
from tests.support.eventually import eventually
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions

_IMPATIENT = LogSettings(
    first_retry_seconds=0.0001, longest_retry_seconds=0.001, drain_seconds=0.05, batch_size=2
)


@pytest.fixture
def store() -> MemoryDecisions:
    return MemoryDecisions()


@pytest.fixture
def log(store: MemoryDecisions) -> DecisionLog:
    return DecisionLog(store, _IMPATIENT)


@asynccontextmanager
async def _running(log: DecisionLog) -> AsyncIterator[None]:
    task = asyncio.create_task(log.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_the_writer_writes_what_is_appended(log: DecisionLog, store: MemoryDecisions) -> None:
    async with _running(log):
        log.append(a_decision("a/first"))
        await eventually(lambda: log.written == 1)
        log.append(a_decision("a/second"))
        await eventually(lambda: log.written == 2)
    assert [record.subject for record in store.records] == ["a/first", "a/second"]


async def test_records_wait_while_the_store_is_away_and_are_written_later(
    log: DecisionLog, store: MemoryDecisions, caplog: pytest.LogCaptureFixture
) -> None:
    records = [a_decision(f"team-a/gang-{number}") for number in range(5)]
    store.is_away = True
    async with _running(log):
        for record in records:
            log.append(record)
        await eventually(lambda: "decisions not written, will retry" in caplog.text)
        assert (log.pending, log.written) == (5, 0)
        store.is_away = False
        await eventually(lambda: log.pending == 0)
    assert store.records == records


async def test_a_stopping_writer_writes_what_is_pending(
    log: DecisionLog, store: MemoryDecisions
) -> None:
    async with _running(log):
        await asyncio.sleep(0)
        for number in range(5):
            log.append(a_decision(f"team-a/gang-{number}"))
    assert (log.pending, len(store.records)) == (0, 5)


async def test_a_stopping_writer_does_not_wait_for_a_store_that_is_away(
    log: DecisionLog, store: MemoryDecisions, caplog: pytest.LogCaptureFixture
) -> None:
    store.is_away = True
    async with _running(log):
        await asyncio.sleep(0)
        log.append(a_decision())
    assert log.pending == 1
    assert "decisions lost at shutdown" in caplog.text


async def test_a_stopping_writer_does_not_wait_for_a_store_that_hangs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = DecisionLog(_HangingStore(), _IMPATIENT)
    async with _running(log):
        log.append(a_decision())
        await asyncio.sleep(0)
    assert "decisions lost at shutdown" in caplog.text


async def test_a_flush_tells_that_the_store_is_away(
    log: DecisionLog, store: MemoryDecisions
) -> None:
    log.append(a_decision())
    store.is_away = True
    with pytest.raises(BackendError, match="unavailable"):
        await log.flush()
    assert (log.pending, log.written, log.dropped) == (1, 0, 0)


async def test_a_batch_of_unknown_fate_is_written_again_and_stored_once() -> None:
    store = _ForgetfulStore()
    log = DecisionLog(store, _IMPATIENT)
    async with _running(log):
        log.append(a_decision())
        await eventually(lambda: log.pending == 0)
    assert (len(store.records), store.attempts, log.written) == (1, 2, 1)


async def test_records_appended_during_a_flush_do_not_prolong_it() -> None:
    store = _BusyStore()
    log = store.log = DecisionLog(store, LogSettings(batch_size=1))
    log.append(a_decision("a/early"))
    await log.flush()
    assert [record.subject for record in store.records] == ["a/early"]
    assert log.pending == 1


class _HangingStore(MemoryDecisions):
    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        await asyncio.Event().wait()
        raise AssertionError("it hangs for ever")


class _ForgetfulStore(MemoryDecisions):
    """Stores a batch the first time too, but the answer gets lost."""

    attempts = 0

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        self.attempts += 1
        refused = await super().insert(records)
        if self.attempts == 1:
            raise BackendError("connection lost")
        return refused


class _BusyStore(MemoryDecisions):
    """While it stores, the next record arrives."""

    log: DecisionLog

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        self.log.append(a_decision("a/late"))
        return await super().insert(records)
