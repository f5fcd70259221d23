"""The log's tables by day: made ahead, dropped when old, never in the writers' way."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from policy.errors import BackendError
from state.database.database import Database
from state.database.maintenance import LogMaintenance
from state.database.retention import RetentionSettings
from state.log.postgres import PostgresDecisions
from tests.support.eventually import eventually
from tests.support.state.records import a_decision

_NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
_DAY = timedelta(days=1)
_SETTINGS = RetentionSettings(log_days=3, ahead_days=2)


async def _days(database: Database) -> list[str]:
    rows = await database.pool.fetch(
        "SELECT inhrelid::regclass::text FROM pg_inherits"
        " WHERE inhparent = 'decisions'::regclass ORDER BY 1"
    )
    return [row[0].removeprefix("decisions_") for row in rows]


async def _rows_by_table(database: Database) -> dict[str, int]:
    rows = await database.pool.fetch(
        "SELECT tableoid::regclass::text, count(*) FROM decisions GROUP BY 1 ORDER BY 1"
    )
    return {name.removeprefix("decisions_"): count for name, count in rows}


async def test_days_are_made_ahead_once(database: Database) -> None:
    maintenance = LogMaintenance(database.pool, _SETTINGS)
    await asyncio.gather(*(maintenance.maintain(_NOW) for _ in range(4)))
    assert await _days(database) == ["20260309", "20260310", "20260311", "20260312", "default"]
    await PostgresDecisions(database.pool).insert(
        [a_decision(at=_NOW + number * _DAY) for number in (-1, 0, 0, 1)]
    )
    assert await _rows_by_table(database) == {"20260309": 1, "20260310": 2, "20260311": 1}


async def test_rows_that_came_too_early_move_to_their_day(database: Database) -> None:
    store = PostgresDecisions(database.pool)
    records = [a_decision(at=_NOW + number * _DAY) for number in range(6)]
    await store.insert(records)
    assert await _rows_by_table(database) == {"default": 6}
    await LogMaintenance(database.pool, _SETTINGS).maintain(_NOW)
    assert await _rows_by_table(database) == {
        "20260310": 1, "20260311": 1, "20260312": 1, "default": 3,
    }  # fmt: skip
    await store.insert(records)  # a repeated write is recognised wherever the rows are now
    assert await store.recent(100) == records[::-1]


async def test_old_days_are_dropped_as_a_whole(database: Database) -> None:
    store = PostgresDecisions(database.pool)
    maintenance = LogMaintenance(database.pool, _SETTINGS)
    for number in range(6):
        await maintenance.maintain(_NOW + number * _DAY)
        await store.insert([a_decision(str(number), at=_NOW + number * _DAY)])
    assert [record.subject for record in await store.recent(100)] == ["5", "4", "3", "2"]
    assert (await _days(database))[0] == "20260312"


async def test_a_reader_delays_a_drop_and_not_the_writers(
    database: Database, database_url: str
) -> None:
    store = PostgresDecisions(database.pool)
    maintenance = LogMaintenance(database.pool, _SETTINGS)
    await maintenance.maintain(_NOW)
    later = _NOW + 10 * _DAY
    reader = await asyncpg.connect(database_url)
    try:
        async with reader.transaction():
            await reader.fetch("SELECT count(*) FROM decisions")
            drop = asyncio.create_task(maintenance.maintain(later))
            async with asyncio.timeout(5):
                while not drop.done():
                    await store.insert([a_decision(at=_NOW)])
            with pytest.raises(BackendError, match="lock timeout"):
                drop.result()
        assert len(await store.recent(1)) == 1
        await maintenance.maintain(later)
        assert await store.recent(1) == []
    finally:
        await reader.close()


async def test_maintenance_goes_on_after_a_failure(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RetentionSettings(every_seconds=0.01, retry_seconds=0.01)
    await database.pool.execute("ALTER FUNCTION drop_decision_day RENAME TO gone")
    task = asyncio.create_task(LogMaintenance(database.pool, settings).run())
    await eventually(lambda: "retention failed, will retry" in caplog.text)
    await database.pool.execute("ALTER FUNCTION gone RENAME TO drop_decision_day")
    caplog.clear()
    await asyncio.sleep(0.1)
    assert "retention failed" not in caplog.text[-200:]
    task.cancel()
    await asyncio.wait([task])
