"""The decision log on a Postgres that is killed under it."""

import asyncio
import os
import signal
from pathlib import Path

from state.database.database import Database, open_database
from state.database.migrator import migrate
from state.log.log import DecisionLog, LogSettings
from state.log.postgres import PostgresDecisions
from tests.support.eventually import eventually
from tests.support.state.records import a_decision

_IMPATIENT = LogSettings(first_retry_seconds=0.01, longest_retry_seconds=0.05, batch_size=10)


async def test_records_of_an_outage_are_written_once_it_is_over(embedded_directory: Path) -> None:
    records = [a_decision(f"team-a/gang-{number}") for number in range(100)]
    url = f"embedded:{embedded_directory}"
    async with open_database(url, application_name="tests") as database:
        await migrate(database.pool)
        log = DecisionLog(PostgresDecisions(database.pool), _IMPATIENT)
        writer = asyncio.create_task(log.run())
        for record in records[:50]:
            log.append(record)
        await eventually(lambda: log.written >= 10)  # in the middle of it, if we are quick
        await _kill_server(database)
        for record in records[50:]:
            log.append(record)
        assert log.pending >= 50
        assert database.server is not None
        await database.server.start()
        await eventually(lambda: log.pending == 0)
        assert await log.recent(1000) == records[::-1]
        assert (log.written, log.dropped) == (100, 0)
        writer.cancel()
        await asyncio.wait([writer])


async def _kill_server(database: Database) -> None:
    assert database.server is not None
    os.kill(database.server.pid, signal.SIGKILL)
    waiting = asyncio.create_task(database.wait_died())
    await asyncio.wait([waiting])
    assert waiting.exception() is not None


async def test_the_newest_decisions_of_a_subject_come_from_an_index(database: Database) -> None:
    log = DecisionLog(PostgresDecisions(database.pool))
    for number in range(2000):
        log.append(a_decision(f"team-a/gang-{number % 500}"))
    await log.flush()
    await database.pool.execute("ANALYZE decisions")
    plan = await database.pool.fetch(
        "EXPLAIN SELECT * FROM decisions WHERE subject = 'team-a/gang-7' ORDER BY at DESC LIMIT 10"
    )
    assert any("subject" in row[0] and "Index" in row[0] for row in plan)
