"""The usual questions to log and history, asked of a database with many rows."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from bench.report import Result, percentile
from state.database.database import Database
from state.database.maintenance import LogMaintenance
from state.database.retention import RetentionSettings
from state.history.runs import PostgresHistory, RunFilter
from state.log.postgres import PostgresDecisions

_DAYS = 30
_ROWS_PER_GANG = 12
_USERS = 500
_STEP = 50_000
_ASKED = 20
_MINUTES = 60.0

_FILL_DECISIONS = """
INSERT INTO decisions (
    key, at, service, kind, subject, pod_uid, outcome, reason, policy_version, epoch, sequence,
    latency_seconds, details, inputs
)
SELECT
    gen_random_uuid(), $1::timestamptz + n * $4::interval, 'extender',
    (ARRAY['admission', 'pod', 'placement', 'bind', 'pod', 'release'])[1 + n % 6],
    'team-' || n / 12 % 50 || '/train-' || n / 12, md5((n / 12)::text)::uuid, 'placed',
    'placed on gpu-node-' || n % 5000, '0123456789ab', 1, n, 0.0004,
    '{"node": "gpu-node-00001.example", "leafCells": [0, 1, 2, 3, 4, 5, 6, 7]}',
    '{"candidates": {"but": ["gpu-node-00001.example", "gpu-node-00002.example"]}}'
FROM generate_series($2::bigint, $3::bigint) AS n
"""

_FILL_HISTORY = """
INSERT INTO gang_history (
    run, gang, user_name, group_name, vc, requested_class, granted_class, leaf_count, asked_at,
    started_at, ended_at, nodes, outcome
)
SELECT
    n, 'team-' || n % 50 || '/train-' || n, 'user-' || n % 500, 'group-' || n % 20,
    'vc-' || n % 10, 'prod', (ARRAY['prod', 'test', 'oppo'])[1 + n % 3], 8, at,
    at + n % 600 * interval '1 second', at + n % 600 * interval '1 second' + interval '3 hours',
    ARRAY['gpu-node-' || n % 5000], 'succeeded'
FROM generate_series($2::bigint, $3::bigint) AS n,
    LATERAL (SELECT $1::timestamptz + n * $4::interval AS at) AS times
"""


async def measure(database: Database, *, rows: int) -> list[Result]:
    """Fill the database with a month of rows, then ask."""
    now = datetime.now(UTC)
    seconds = await _fill(database, rows, now=now)
    results = [Result(case={"rows": rows}, metric="fill_minutes", value=seconds / _MINUTES)]
    decisions, history = PostgresDecisions(database.pool), PostgresHistory(database.pool)
    gangs = rows // _ROWS_PER_GANG
    pod = await database.pool.fetchval("SELECT md5($1::text)::uuid::text", str(gangs // 2))
    user, subject = f"user-{gangs // 2 % _USERS}", f"team-{gangs // 2 % 50}/train-{gangs // 2}"
    month = timedelta(days=_DAYS)
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "my last jobs": lambda: history.find(RunFilter(user_name=user), 20),
        "why this pod": lambda: decisions.of_pod(pod, 100),
        "why this gang": lambda: decisions.recent(100, subject=subject),
        "newest": lambda: decisions.recent(100),
        "hours of a month": lambda: history.hours_between(now - month, now),
        "replay 1000 rows": lambda: decisions.of_epoch("extender", epoch=1, first=rows // 2),
    }
    for name, ask in questions.items():
        results += await _ask(name, ask, rows=rows)
    return results


async def _fill(database: Database, rows: int, *, now: datetime) -> float:
    settings = RetentionSettings(log_days=_DAYS + 1, ahead_days=1)
    await database.pool.execute("TRUNCATE decisions, gang_history, run_pods, gang_days")
    for day in range(_DAYS + 1):
        await LogMaintenance(database.pool, settings).maintain(now - timedelta(days=day))
    began, first = time.monotonic(), now - timedelta(days=_DAYS)
    for query, total in ((_FILL_DECISIONS, rows), (_FILL_HISTORY, rows // _ROWS_PER_GANG)):
        step = timedelta(days=_DAYS) / total
        for start in range(0, total, _STEP):
            end = min(start + _STEP, total) - 1
            await database.pool.execute(query, first, start, end, step)
    async with database.pool.acquire() as connection:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("VACUUM ANALYZE decisions, gang_history, gang_days", timeout=3600)
    return time.monotonic() - began


async def _ask(name: str, ask: Callable[[], Awaitable[object]], *, rows: int) -> list[Result]:
    times: list[float] = []
    for _ in range(_ASKED):
        began = time.perf_counter()
        answer = await ask()
        times.append((time.perf_counter() - began) * 1000)
        assert answer, name
    case: dict[str, int | str] = {"rows": rows, "question": name}
    return [
        Result(case=case, metric="first_ms", value=times[0]),
        Result(case=case, metric="answer_p50_ms", value=percentile(times, 50)),
        Result(case=case, metric="answer_p99_ms", value=percentile(times, 99)),
    ]
