"""The usual questions to log and history: answered from indexes, and by views for people."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from state.database.database import Database
from state.database.maintenance import LogMaintenance
from state.database.queries import sql
from state.history.facts import GangFacts
from state.history.runs import PostgresHistory, RunFilter
from state.log.postgres import PostgresDecisions
from tests.support.state.records import a_decision

_DAY = datetime(2026, 3, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_OBSERVATIONS = ["node", "pod"]
_ANY_RUN = (None,) * 9 + (10,)
_MONTH = (_DAY, _DAY + 30 * 24 * _HOUR, None, None)
_LAST = (_DAY + timedelta(days=1), UUID(int=7))
_TIME = (_DAY, _DAY + timedelta(hours=6))


def _runs(**wanted: Any) -> tuple[Any, ...]:
    """Return the values of `find_runs`."""
    names = ("user", "group", "vc", "gang", "outcome", "has_ended", "since", "until")
    return (*(wanted.get(name) for name in names), None, None, 10)


@pytest.fixture
async def full(database: Database) -> Database:
    """A database with so many rows that reading all of them is not the best plan."""
    await LogMaintenance(database.pool).maintain(_DAY)
    await database.pool.execute(
        """INSERT INTO decisions
            (key, at, service, kind, subject, outcome, reason, latency_seconds, pod_uid, epoch,
             sequence)
        SELECT gen_random_uuid(), $1::timestamptz + n * interval '10 seconds', 'extender', 'bind',
            'a/' || n % 4000, 'bound', '', 0, n % 5000, 1 + n % 3, n
        FROM generate_series(1, 20000) AS n""",
        _DAY,
    )
    await database.pool.execute(
        """INSERT INTO gang_history
            (run, gang, user_name, group_name, vc, outcome, leaf_count, asked_at, started_at,
             ended_at)
        SELECT n, 'a/' || n % 4000, 'user-' || n % 500, 'group-' || n % 100, 'lab', 'succeeded', 8,
            at, at + interval '1 minute', at + interval '1 hour'
        FROM generate_series(1, 20000) AS n, LATERAL (
            SELECT $1::timestamptz + n * interval '1 hour' AS at) AS times""",
        _DAY,
    )
    await database.pool.execute("ANALYZE decisions, gang_history, gang_days")
    return database


@pytest.mark.parametrize(
    ("query", "arguments", "index"),
    [
        ("recent_decisions", (10, False, _OBSERVATIONS, *_LAST), "pkey"),
        ("recent_decisions_of_subject", (10, False, _OBSERVATIONS, *_LAST, "a/7"), "subject"),
        ("why_this_pod", ("7", 10), "pod_uid"),
        ("rows_of_epoch", ("extender", 2, 500, 10), "service_epoch_sequence"),
        ("kinds_of_epoch", ("extender", 2, 500, 900, ["node"], 10), "service_epoch_sequence"),
        ("epochs_between", ("extender", *_TIME), "service_epoch_sequence"),
        ("epochs_of_subject_between", ("extender", *_TIME, "a/7"), "subject"),
        ("rows_beside_epochs", ("extender", *_TIME[1:], None, _TIME[0], UUID(int=0), 10), "pkey"),
        ("count_stored", ([_DAY], [UUID(int=7)]), "pkey"),
        ("find_runs", ("user-7", *_ANY_RUN), "gang_history_user"),
        ("find_runs", (None, *_ANY_RUN), "gang_history_asked"),
        ("find_runs", _runs(group="group-7"), "gang_history_group"),
        ("find_runs", _runs(vc="none"), "gang_history_vc"),
        ("find_runs", _runs(outcome="evicted"), "gang_history_outcome"),
        ("find_runs", _runs(has_ended=True, since=_DAY + 19_990 * _HOUR), "gang_history_until"),
        ("hours_between", _MONTH, "gang_days_pkey"),
        ("hours_between", _MONTH, "gang_history_running"),
        ("hours_between", _MONTH, "gang_history_held"),
        ("hours_between", (*_MONTH[:2], "user-7", None), "gang_days_user"),
        ("hours_between", (*_MONTH[:2], None, "group-7"), "gang_days_group"),
    ],
)
async def test_the_usual_questions_are_answered_from_an_index(
    full: Database, query: str, arguments: tuple[Any, ...], index: str
) -> None:
    async with full.pool.acquire() as connection:
        plan = await connection.fetch(f"EXPLAIN {sql(query)}", *arguments)
    text = "\n".join(row[0] for row in plan)
    used = [line for line in text.splitlines() if "Index" in line and index in line]
    assert used, text
    # A day without rows may as well be read whole.
    whole = [line for line in text.splitlines() if "Seq Scan" in line]
    assert [line for line in whole if "cost=0.00..0.00" not in line] == []


async def test_a_question_about_few_runs_is_planned_for_them_each_time(full: Database) -> None:
    history = PostgresHistory(full.pool)
    # After costly questions, Postgres would take one plan for all to be as good.
    for wanted in [RunFilter()] * 6 + [RunFilter(user_name="user-7")] * 2:
        await history.find(wanted, 1000)
    async with full.pool.acquire() as connection:  # the one that was used before
        plans = await connection.fetch(
            """SELECT generic_plans, custom_plans FROM pg_prepared_statements
            WHERE statement LIKE '%gang_history%' AND statement NOT LIKE '%pg_prepared%'"""
        )
    assert max(tuple(one) for one in plans) == (0, 8)


def _ran(run: str, *, start: datetime, hours: float, **facts: Any) -> GangFacts:
    told = {"user_name": "alice", "group_name": "vision", "vc": "lab", "granted_class": "test",
            "leaf_count": 8, "asked_at": start - _HOUR, **facts}  # fmt: skip
    return GangFacts(
        run=run, gang=f"a/{run}", started_at=start, ended_at=start + hours * _HOUR, **told
    )


async def _tell(database: Database, *facts: GangFacts) -> None:
    store = PostgresDecisions(database.pool)
    await store.insert([a_decision(facts=fact) for fact in facts])


async def test_leaf_cell_hours_are_split_by_day(database: Database) -> None:
    await _tell(
        database,
        _ran("across", start=_DAY + 22 * _HOUR, hours=28),
        _ran("midnight", start=_DAY + 48 * _HOUR, hours=24),
        _ran("other", start=_DAY, hours=1, user_name="bob"),
    )
    rows = await database.pool.fetch(
        "SELECT day, user_name, leaf_cell_hours, gangs FROM leaf_cell_hours ORDER BY 1, 2"
    )
    assert [tuple(row) for row in rows] == [
        (date(2026, 3, 1), "alice", 16.0, 1),
        (date(2026, 3, 1), "bob", 8.0, 1),
        (date(2026, 3, 2), "alice", 192.0, 1),
        (date(2026, 3, 3), "alice", 208.0, 2),
    ]


async def test_waiting_times_are_percentiles_by_day(database: Database) -> None:
    await _tell(
        database,
        *(
            _ran(str(number), start=_DAY + _HOUR, hours=1,
                 asked_at=_DAY + _HOUR - timedelta(seconds=number))
            for number in range(101)
        ),
        GangFacts(run="waits", gang="a/b", asked_at=_DAY, vc="lab"),
    )  # fmt: skip
    [row] = await database.pool.fetch("SELECT * FROM waiting_times")
    assert tuple(row) == (date(2026, 3, 1), "lab", "test", 101, 50.0, 90.0)


async def test_preemptions_tell_for_whom_and_what_it_cost(database: Database) -> None:
    await _tell(
        database,
        _ran("victim", start=_DAY, hours=3, outcome="preempted", preempted_for="b/gpt"),
        _ran("lucky", start=_DAY, hours=3, outcome="succeeded"),
    )
    [row] = await database.pool.fetch(
        "SELECT day, gang, preempted_for, leaf_cell_hours_run FROM preemptions"
    )
    assert tuple(row) == (date(2026, 3, 1), "a/victim", "b/gpt", 24.0)
