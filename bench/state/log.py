"""The decision log: what an append costs, how many rows Postgres takes, how soon it answers.

`--rows 10000000` fills a database with that many rows first (minutes, and 1 kB of disk each) and
then asks the usual questions. A server of its own in a temporary directory, commits synced to disk.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random

from bench.report import SEED, Result, microseconds_of, percentile
from bench.state import log_questions
from state.database.database import Database, open_database
from state.database.maintenance import LogMaintenance
from state.database.migrator import migrate
from state.history.facts import GangFacts
from state.log.candidates import KnownNodes
from state.log.log import DecisionLog, LogSettings
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord, RowKind
from state.log.spool.spool import Spool
from tests.support.twins.log import MemoryDecisions

_NODES = (100, 5000)
_OFFERED_PER_SECOND = 6000
_OFFERED = 0.1  # of a large cluster, kube-scheduler looks at a tenth


def measure(*, is_quick: bool, rows: int | None = None) -> list[Result]:
    """Measure appending, writing and reading."""
    with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as folder:
        directory = Path(folder)
        directory.chmod(0o755)  # an embedded server may run as another user
        results = [*_measure_candidates(), *_measure_append(directory)]
        results += asyncio.run(_measure_database(directory, is_quick=is_quick, rows=rows))
    return results


def _measure_candidates() -> Iterator[Result]:
    for nodes in _NODES:
        names = [f"gpu-node-{index:05}.example" for index in range(nodes)]
        known = KnownNodes(names)
        offered = dict.fromkeys(Random(SEED).sample(names, int(nodes * _OFFERED)))
        for what, list_ in (("all", dict.fromkeys(names)), ("tenth", offered)):
            times = microseconds_of(partial(known.encode, list_), repeat=300)
            case: dict[str, int | str] = {"nodes": nodes, "offered": what}
            yield Result(case=case, metric="encode_p50_us", value=percentile(times, 50))


def _measure_append(directory: Path) -> Iterator[Result]:
    spool = Spool(directory / "append")
    for what, log in (
        ("memory", DecisionLog(MemoryDecisions())),
        ("spool", DecisionLog(MemoryDecisions(), spool=spool)),
    ):
        times = microseconds_of(partial(log.append, next(_rows(100))), repeat=20_000)
        for percent in (50, 99):
            value = percentile(times, percent)
            yield Result(case={"log": what}, metric=f"append_p{percent}_us", value=value)
    spool.close()


async def _measure_database(directory: Path, *, is_quick: bool, rows: int | None) -> list[Result]:
    results: list[Result] = []
    async with _database(directory) as database:
        for nodes in _NODES:
            rate, size = await _ingest(database, directory, nodes=nodes, is_quick=is_quick)
            case: dict[str, int | str] = {"nodes": nodes}
            results.append(Result(case=case, metric="ingest_rows_per_s", value=rate))
            results.append(Result(case=case, metric="row_bytes", value=size))
        results += await sustain(database, directory, seconds=2 if is_quick else 10)
        total = rows or (20_000 if is_quick else 200_000)
        results += await log_questions.measure(database, rows=total)
    return results


@asynccontextmanager
async def _database(directory: Path) -> AsyncIterator[Database]:
    url = f"embedded:{directory / 'postgres'}"
    async with open_database(url, application_name="bench") as database:
        await migrate(database.pool)
        await LogMaintenance(database.pool).maintain(datetime.now(UTC))
        yield database


async def _ingest(
    database: Database, directory: Path, *, nodes: int, is_quick: bool
) -> tuple[float, float]:
    """Write rows as fast as they are taken; return rows a second and bytes a row in its table."""
    await database.pool.execute("TRUNCATE decisions, gang_history, run_pods, gang_days")
    records = list(islice(_rows(nodes), 10_000 if is_quick else 60_000))
    spool = Spool(directory / f"ingest-{nodes}")
    log = DecisionLog(PostgresDecisions(database.pool), LogSettings(), spool=spool)
    began = time.monotonic()
    for record in records:
        log.append(record)
    await log.flush()
    seconds = time.monotonic() - began
    spool.close()
    size = await database.pool.fetchval(
        "SELECT sum(pg_table_size(inhrelid)) FROM pg_inherits"
        " WHERE inhparent = 'decisions'::regclass"
    )
    return len(records) / seconds, float(size) / len(records)


async def sustain(
    database: Database,
    directory: Path,
    *,
    seconds: float,
    offered_per_second: int = _OFFERED_PER_SECOND,
    on_begin: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Append at a steady rate while the log writes behind; tell how far it falls behind."""
    records = list(islice(_rows(max(_NODES)), int(offered_per_second * seconds)))
    spool = Spool(directory / "sustain")
    log = DecisionLog(PostgresDecisions(database.pool), spool=spool)
    writer = asyncio.create_task(log.run())
    on_begin()
    began, most = time.monotonic(), 0
    done = 0
    while done < len(records):
        due = int((time.monotonic() - began) * offered_per_second)
        for record in records[done:due]:
            log.append(record)
        done = min(due, len(records))
        most = max(most, log.unacknowledged)
        await asyncio.sleep(0.002)
    await log.flush()
    rate = log.written / (time.monotonic() - began)
    writer.cancel()
    await asyncio.wait([writer])
    spool.close()
    case: dict[str, int | str] = {"offered_per_s": offered_per_second}
    return [
        Result(case=case, metric="sustained_rows_per_s", value=rate),
        Result(case=case, metric="most_unacknowledged", value=most),
        Result(case=case, metric="spooled_rows", value=log.spooled),
    ]


def _rows(nodes: int) -> Iterator[DecisionRecord]:
    """Yield rows as a busy extender makes them: a gang asks, is placed, bound, and ends."""
    random = Random(SEED)
    names = [f"gpu-node-{index:05}.example" for index in range(nodes)]
    known = KnownNodes(names)
    sequences = count(1)
    for number in count():
        offered = random.sample(names, int(nodes * _OFFERED)) if number % 2 else names
        candidates = known.encode(offered)
        gang, pod = (
            f"team-{number % 50}/train-{number}",
            f"{number:08x}-1c2d-4e5f-8a9b-0123456789ab",
        )
        facts = GangFacts(run=pod, gang=gang, user_name=f"user-{number % 200}", vc="lab",
                          leaf_count=8, asked_at=datetime.now(UTC))  # fmt: skip
        for kind in (
            RowKind.ADMISSION,
            RowKind.POD,
            RowKind.PLACEMENT,
            RowKind.BIND,
            RowKind.POD,
            RowKind.RELEASE,
        ):
            yield DecisionRecord(
                at=datetime.now(UTC),
                service="extender",
                kind=kind,
                subject=gang,
                outcome="placed",
                reason=f"placed on {names[number % nodes]}",
                latency_seconds=0.0004,
                pod_uid=pod,
                policy_version="0123456789ab",
                details={"node": names[number % nodes], "leafCells": list(range(8))},
                inputs={"candidates": candidates}
                if kind is RowKind.PLACEMENT
                else {"leafCount": 8},
                epoch=1,
                sequence=next(sequences),
                facts=facts if kind in (RowKind.ADMISSION, RowKind.BIND, RowKind.RELEASE) else None,
            )
