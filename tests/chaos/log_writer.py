"""Writes decisions until it is killed: `python -m tests.chaos.log_writer URL SPOOL MIRROR NAME`.

Appends records `NAME/0`, `NAME/1` … and prints, as `appended acknowledged lost`, how far it got.
With an empty NAME it writes nothing of its own and ends when the spool is empty. MIRROR is a
folder, or empty for none.
"""

import asyncio
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from state.database.database import PoolSettings, open_database
from state.log.log import DecisionLog, LogSettings
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord
from state.log.spool.mirror import open_mirror
from state.log.spool.spool import Spool, SpoolSettings

_SETTINGS = LogSettings(
    first_retry_seconds=0.01, longest_retry_seconds=0.1, batch_size=50, spool_after_seconds=0.02
)


async def main(url: str, directory: str, mirrored: str, name: str) -> None:
    """Write until killed, or until nothing is left."""
    pool = PoolSettings(connections=2, open_timeout_seconds=30, statement_timeout_seconds=2)
    spool = Spool(Path(directory), SpoolSettings(segment_bytes=20_000))
    async with open_database(url, application_name="writer", settings=pool) as database:
        mirror = open_mirror(Path(mirrored)) if mirrored else None
        store = PostgresDecisions(database.pool)
        log = DecisionLog(store, _SETTINGS, spool=spool, mirror=mirror)
        writer = asyncio.create_task(log.run())
        if name:
            await _append_for_ever(log, name)
        while log.pending:
            await asyncio.sleep(0.01)
        print(0, 0, log.lost, flush=True)
        writer.cancel()
        await asyncio.wait([writer])
    spool.close()


async def _append_for_ever(log: DecisionLog, name: str) -> None:
    for number in count():
        log.append(_record(f"{name}/{number}"))
        if number % 10 == 9:
            print(number + 1, log.acknowledged, log.lost, flush=True)
            await asyncio.sleep(0.002)


def _record(subject: str) -> DecisionRecord:
    return DecisionRecord(
        at=datetime.now(UTC),
        service="extender",
        kind="bind",
        subject=subject,
        outcome="bound",
        reason="because",
        latency_seconds=0.001,
    )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
