"""A database that may be unavailable when a service starts.

Pods can be created and scheduled without Postgres, so a service must also start without it. Errors
that only an administrator can fix, such as a malformed URL or a wrong password, end the start. A
server that does not answer does not end it: every statement fails with an error until the server
was reached and its schema is up to date, as if the connection had been lost.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, NoReturn

import asyncpg

from policy.errors import BackendError, SettingsError
from state.database.database import (
    Database,
    PoolSettings,
    UnreachableError,
    close_pool,
    connect_pool,
    open_database,
    parse_embedded,
)

logger = logging.getLogger(__name__)

Prepare = Callable[[asyncpg.Pool], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredSettings:
    """How long a start waits for the database, and how often it retries later."""

    start_seconds: float = 10.0
    """How long a start waits for the database and its schema before it continues without."""
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 5.0
    """The pause between later attempts doubles from the first to the longest."""


class DeferredPool:
    """A connection pool that is opened later: until then, every call fails at once."""

    def __init__(self) -> None:
        self._pool: asyncpg.Pool | None = None

    @property
    def is_open(self) -> bool:
        """Whether the server was reached."""
        return self._pool is not None

    def open(self, pool: asyncpg.Pool) -> None:
        """Use this pool from now on."""
        self._pool = pool

    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Any]:
        """Acquire a connection."""
        connection: AbstractAsyncContextManager[Any] = self._opened().acquire(timeout=timeout)
        return connection

    async def fetch(self, query: str, *values: object) -> list[asyncpg.Record]:
        """Run a query and return its rows."""
        rows: list[asyncpg.Record] = await self._opened().fetch(query, *values)
        return rows

    async def fetchrow(self, query: str, *values: object) -> asyncpg.Record | None:
        """Run a query and return its first row."""
        return await self._opened().fetchrow(query, *values)

    async def fetchval(self, query: str, *values: object) -> Any:  # noqa: ANN401 - any column
        """Run a query and return the first value of its first row."""
        return await self._opened().fetchval(query, *values)

    def _opened(self) -> asyncpg.Pool:
        if self._pool is None:
            raise ConnectionError("the database has not been reached yet")
        return self._pool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredDatabase(Database):
    """A database that `keep_alive` connects to as soon as it is available."""

    pool: DeferredPool
    reach: Callable[[], Awaitable[None]]
    settings: DeferredSettings

    @property
    def is_open(self) -> bool:
        """Whether the database was reached."""
        return self.pool.is_open

    async def keep_alive(self) -> NoReturn:
        """Connect, with retries, then continue like any other database."""
        pause = self.settings.first_retry_seconds
        while not self.is_open:
            try:
                await self.reach()
            except (SettingsError, BackendError) as error:
                extra = {"pause_seconds": pause, "error": str(error)}
                logger.warning("database unavailable, will retry", extra=extra)
                await asyncio.sleep(pause)
                pause = min(pause * 2, self.settings.longest_retry_seconds)
        logger.info("database connected")
        await Database.keep_alive(self)


@contextlib.asynccontextmanager
async def open_deferred(
    url: str,
    *,
    application_name: str,
    prepare: Prepare,
    settings: DeferredSettings | None = None,
) -> AsyncIterator[Database]:
    """Open a database now or later; `prepare` brings its schema up to date before it is used.

    An embedded database is started here: it is available, or the start fails.
    """
    if parse_embedded(url) is not None:
        async with open_database(url, application_name=application_name) as database:
            await prepare(database.pool)
            yield database
        return
    settings, pool = settings or DeferredSettings(), DeferredPool()
    async with AsyncExitStack() as stack:

        async def reach() -> None:
            opened = await _open(url, application_name=application_name, prepare=prepare)
            stack.push_async_callback(close_pool, opened)
            pool.open(opened)

        await _try_at_start(reach, settings)
        yield DeferredDatabase(pool=pool, url=url, reach=reach, settings=settings)


async def _try_at_start(reach: Callable[[], Awaitable[None]], settings: DeferredSettings) -> None:
    """Try to connect; raise only errors that an administrator must fix."""
    try:
        async with asyncio.timeout(settings.start_seconds):
            await reach()
    except (UnreachableError, BackendError, TimeoutError) as error:
        reason = str(error) or f"not ready within {settings.start_seconds:g} s"
        logger.warning("starting without the database", extra={"error": reason})


async def _open(url: str, *, application_name: str, prepare: Prepare) -> asyncpg.Pool:
    pool = await connect_pool(url, application_name=application_name, settings=PoolSettings())
    try:
        await prepare(pool)
    except BaseException:
        await close_pool(pool)
        raise
    return pool
