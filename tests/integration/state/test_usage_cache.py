"""The live cache on a real Postgres: fresh, never waiting, and back after everything."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from policy.errors import SettingsError
from policy.quotas.limits import Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import GroupName, UserName
from state.database.database import Database, open_database
from state.database.migrator import migrate
from state.embedded import EmbeddedPostgres
from state.ledger.usage_cache import CacheSettings, UsageCache
from state.ledger.usage_metrics import UsageMetrics
from tests.support.clocks import FrozenTime
from tests.support.eventually import eventually
from tests.support.state.charges import ALICE, TERM, VISION, a_charge, gang_key
from tests.support.state.ledgers import a_patient_ledger

_ONLY_NOTIFICATIONS = CacheSettings(read_seconds=600)
_ONLY_POLLING = CacheSettings(read_seconds=0.05)
_CHARGE = "SELECT ledger_charge($1::jsonb, interval '10 s', NULL)"


@contextlib.asynccontextmanager
async def _running(cache: UsageCache) -> AsyncIterator[UsageCache]:
    task = asyncio.create_task(cache.run())
    try:
        await eventually(lambda: cache.is_known or task.done())
        yield cache
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_nothing_is_known_at_first() -> None:
    cache = UsageCache("postgresql://nowhere/nothing")
    assert not cache.is_known
    assert cache.staleness_seconds == float("inf")
    assert cache.usage(ALICE) == ScopeUsage(scope=ALICE)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("embedded:/tmp/x", "--database-listen-url is not valid"),
        ("postgresql://u:se/cret@h/d", "--database-listen-url is not valid"),
        ("postgresql://127.0.0.1:1/d", r"cannot listen to PostgreSQL at 127.0.0.1:1, database d"),
    ],
)
async def test_an_address_that_cannot_work_is_refused_at_start_up(url: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        await UsageCache(url).check()
    assert "cret" not in str(refused.value)


async def test_what_is_known_is_measured(database: Database) -> None:
    cache, registry = UsageCache(database.url), CollectorRegistry()
    UsageMetrics(registry, cache)
    assert registry.get_sample_value("cellgate_usage_staleness_seconds") == float("inf")
    async with _running(cache):
        staleness = registry.get_sample_value("cellgate_usage_staleness_seconds")
        assert staleness is not None
        assert staleness < 60
    cache.assume(a_charge())
    assert registry.get_sample_value("cellgate_usage_assumed_charges") == 1
    assert registry.get_sample_value("cellgate_usage_resyncs_total") == 1


async def test_what_was_charged_before_is_known_from_the_start(database: Database) -> None:
    await a_patient_ledger(database.pool).charge(a_charge())
    async with _running(UsageCache(database.url)) as cache:
        assert cache.usage(VISION).leaf_cells == 4
        assert cache.staleness_seconds < 60


async def test_hours_grow_with_the_clock_without_charges(database: Database) -> None:
    clock = FrozenTime()
    ledger = a_patient_ledger(database.pool, clock=clock)
    await ledger.charge(a_charge(leaf_count=2))
    async with _running(UsageCache(database.url, now=clock)) as cache:
        for hours in (1, 4, 24, 24 * 40):  # on a Sunday evening at the end of a month
            clock.advance(hours=hours)
            assert cache.usage(ALICE) == await ledger.usage(ALICE)
        assert cache.usage(Scope(UserName("nobody"))) == ScopeUsage(scope=Scope(UserName("nobody")))


async def test_a_charge_that_is_assumed_twice_counts_once() -> None:
    cache = UsageCache("postgresql://nowhere/nothing")
    cache.assume(a_charge(leaf_count=9))
    cache.assume(a_charge(leaf_count=2, group=GroupName("nlp")))
    assert cache.usage(ALICE).leaf_cells == 2
    assert cache.usage(VISION).leaf_cells == 0
    cache.assumed.forget(gang_key("bert"))
    cache.assumed.forget(gang_key("bert"))
    assert cache.usage(ALICE) == ScopeUsage(scope=ALICE)


async def test_own_charges_are_seen_at_once_and_others_are_told(database: Database) -> None:
    async with (
        _running(UsageCache(database.url, _ONLY_NOTIFICATIONS)) as mine,
        _running(UsageCache(database.url, _ONLY_NOTIFICATIONS)) as theirs,
    ):
        ledger = a_patient_ledger(database.pool, on_usage=mine.observe)
        await ledger.charge(a_charge())
        assert mine.usage(ALICE).by_leaf_type == {"A100": 4}
        await eventually(lambda: theirs.usage(ALICE).leaf_cells_high == 4)
        await ledger.release([gang_key("bert")], term=TERM)
        await eventually(lambda: theirs.usage(ALICE).gangs == mine.usage(ALICE).gangs == 0)
        assert (mine.resyncs, theirs.resyncs) == (1, 1)


async def test_a_change_without_a_notification_is_found(database: Database) -> None:
    async with _running(UsageCache(database.url, _ONLY_POLLING)) as cache:
        await a_patient_ledger(database.pool).charge(a_charge())
        await eventually(lambda: cache.usage(ALICE).leaf_cells == 4)


async def test_a_transaction_that_commits_late_leaves_no_gap(database: Database) -> None:
    """It has the lower number, and commits after a higher one was seen."""
    row = (
        '[{"decision": "00000000-0000-0000-0000-000000000001", "namespace": "n", "gang": "g",'
        ' "user_name": "late", "group_name": "", "vc": "v", "class": "c", "is_high": false,'
        ' "leaf_type": "", "leaf_count": 3, "limits": []}]'
    )
    late = Scope(UserName("late"))
    async with _running(UsageCache(database.url, _ONLY_POLLING)) as cache:
        async with database.pool.acquire() as connection, connection.transaction():
            await connection.execute(_CHARGE, row)
            await a_patient_ledger(database.pool).charge(a_charge())
            await eventually(lambda: cache.usage(ALICE).leaf_cells == 4)
            assert cache.usage(late).leaf_cells == 0
        await eventually(lambda: cache.usage(late).leaf_cells == 3)
        assert cache.resyncs == 1


async def test_usage_is_served_while_the_server_is_away_and_followed_when_it_is_back(
    embedded_directory: Path,
) -> None:
    async with (
        EmbeddedPostgres(embedded_directory) as server,
        open_database(server.url, application_name="tests") as database,
    ):
        await migrate(database.pool)
        ledger = a_patient_ledger(database.pool)
        await ledger.charge(a_charge())
        settings = CacheSettings(read_seconds=0.05, longest_retry_seconds=0.2)
        async with _running(UsageCache(server.url, settings)) as cache:
            os.kill(server.pid, signal.SIGKILL)
            await eventually(lambda: cache.staleness_seconds > 0.3)
            cache.assume(a_charge("meanwhile", leaf_count=2))
            assert cache.usage(ALICE).leaf_cells == 6
            await server.start()
            await eventually(lambda: cache.resyncs == 2)
            assert cache.staleness_seconds < 1
            assert (await ledger.usage(ALICE)).leaf_cells == 4
            assert cache.usage(ALICE).leaf_cells == 6


async def test_an_assumed_charge_counts_until_the_ledger_has_it(database: Database) -> None:
    async with _running(UsageCache(database.url, _ONLY_POLLING)) as cache:
        charge = a_charge(leaf_type=None)
        cache.assume(charge)
        assert cache.usage(VISION) == ScopeUsage(
            scope=VISION, leaf_cells=4, leaf_cells_high=4, gangs=1
        )
        await a_patient_ledger(database.pool).reconcile([charge], term=TERM)
        await eventually(lambda: len(cache.assumed) == 0)
        assert cache.usage(VISION).leaf_cells == 4


async def test_an_unconfirmed_assumed_charge_is_dropped(database: Database) -> None:
    settings = CacheSettings(read_seconds=0.05, assumed_seconds=0.2)
    async with _running(UsageCache(database.url, settings)) as cache:
        cache.assume(a_charge())
        await eventually(lambda: cache.usage(ALICE).gangs == 0)


async def test_an_assumed_charge_outlives_an_outage_of_any_length(database: Database) -> None:
    seconds = 0.0
    cache = UsageCache(database.url, _ONLY_POLLING, clock=lambda: seconds)
    cache.assume(a_charge())
    seconds = 10_000.0
    async with _running(cache):
        await eventually(lambda: cache.staleness_seconds == 0)
        assert cache.usage(ALICE).gangs == 1
        seconds += 59
        await eventually(lambda: cache.staleness_seconds == 0)
        assert cache.usage(ALICE).gangs == 1
        seconds += 2
        await eventually(lambda: cache.usage(ALICE).gangs == 0)


async def test_of_several_hosts_the_one_that_is_there_is_used(database: Database) -> None:
    there = database.url.partition("host=")[2].partition("&")[0]
    url = database.url.replace(f"host={there}", f"host=/nowhere,{there}").replace(
        "port=5432", "port=5432,5432"
    )
    async with (
        open_database(url, application_name="tests") as several,
        _running(UsageCache(url)) as cache,
    ):
        ledger = a_patient_ledger(several.pool, on_usage=cache.observe)
        await ledger.charge(a_charge(group=GroupName("nlp")))
        assert cache.usage(Scope(None, GroupName("nlp"))).gangs == 1


@pytest.mark.parametrize("staleness", [0.0, 5.0])
async def test_staleness_is_the_time_since_the_last_look(
    database: Database, staleness: float
) -> None:
    now = 100.0
    cache = UsageCache(database.url, clock=lambda: now)
    async with _running(cache):
        pass
    now += staleness
    assert cache.staleness_seconds == staleness
