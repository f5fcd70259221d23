"""PgBouncer in transaction mode between us and Postgres."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from cli.stores import open_ledger
from policy.errors import BackendError, SettingsError
from policy.quotas.limits import Measure
from policy.submission import UserName
from state.database.database import Database, PoolSettings, backend_errors, open_database
from state.ledger.ledger import Charged
from state.ledger.usage_cache import UsageCache
from tests.support.eventually import eventually
from tests.support.state.charges import ALICE, TERM, VISION, a_charge, at_most
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.pgbouncer import pgbouncer

_IGNORES = (
    "ignore_startup_parameters = "
    "statement_timeout, lock_timeout, idle_in_transaction_session_timeout\n"
)


@pytest.fixture(params=["", _IGNORES], ids=["refuses settings", "ignores settings"])
def pooled_url(request: pytest.FixtureRequest, stock_database: Database) -> Iterator[str]:
    with pgbouncer(stock_database.url, settings=request.param) as url:
        yield url


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    settings = PoolSettings(statement_timeout_seconds=0.5)
    async with open_database(url, application_name="tests", settings=settings) as database:
        yield database


async def test_the_ledger_works_through_it(pooled_url: str) -> None:
    async with _opened(pooled_url) as database:
        ledger = a_patient_ledger(database.pool)
        charges = [a_charge(f"g{n}", user=UserName(f"u{n % 7}")) for n in range(60)]
        limits = [at_most(200, Measure.LEAF_CELLS, VISION)]
        answers = await asyncio.gather(*(ledger.charge(one, limits=limits) for one in charges))
        assert sum(isinstance(answer, Charged) for answer in answers) == 50
        for _ in range(5):
            await ledger.confirm([one.gang for one in charges], term=TERM)
        assert len(await ledger.release([one.gang for one in charges], term=TERM)) == 50
        assert (await ledger.usage(VISION)).leaf_cells == 0


async def test_statements_of_many_connections_share_few_servers(pooled_url: str) -> None:
    """A statement that is prepared on one server must not be looked for on another."""
    async with _opened(pooled_url) as database:

        async def ask(number: int) -> int:
            answer: int = await database.pool.fetchval("SELECT $1::int + $2::int", number, 1)
            return answer

        for _ in range(10):
            answers = await asyncio.gather(*(ask(number) for number in range(40)))
            assert answers == list(range(1, 41))


async def test_a_statement_ends_in_time(pooled_url: str) -> None:
    async with _opened(pooled_url) as database:
        began = time.monotonic()
        with pytest.raises(BackendError), backend_errors("sleeping"):
            await database.pool.fetch("SELECT pg_sleep(20)")
        assert time.monotonic() - began < 10
        assert await database.pool.fetchval("SELECT 1") == 1


async def test_the_server_has_no_statement_left_running(
    pooled_url: str, stock_database: Database
) -> None:
    async with _opened(pooled_url) as database:
        with pytest.raises(BackendError), backend_errors("sleeping"):
            await database.pool.fetch("SELECT pg_sleep(20)")
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(20)%' AND "
        running += "state = 'active' AND pid <> pg_backend_pid()"
        while await stock_database.pool.fetchval(running):
            await asyncio.sleep(0.01)


async def test_listening_through_it_is_refused_with_a_clear_word(pooled_url: str) -> None:
    cache = UsageCache(pooled_url)
    with pytest.raises(SettingsError, match=r"set the direct address .* --database-listen-url"):
        await cache.run()


async def test_a_service_behind_it_says_at_once_what_it_needs(
    pooled_url: str, stock_database: Database
) -> None:
    async with _opened(pooled_url) as database:
        with pytest.raises(SettingsError, match="--database-listen-url"):
            await open_ledger(database).__aenter__()
        async with open_ledger(database, listen_url=stock_database.url) as (ledger, usage):
            await ledger.charge(a_charge())
            assert usage.usage(ALICE).leaf_cells == 4


async def test_the_cache_follows_by_a_direct_address(
    pooled_url: str, stock_database: Database
) -> None:
    async with _opened(pooled_url) as database:
        cache = UsageCache(stock_database.url)
        task = asyncio.create_task(cache.run())
        await eventually(lambda: cache.is_known)
        await a_patient_ledger(database.pool).charge(a_charge())
        await eventually(lambda: cache.usage(ALICE).leaf_cells == 4)
        task.cancel()
        await asyncio.wait([task])
