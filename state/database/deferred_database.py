"""A database that need not be there when a service starts.

Losing Postgres never stops pods from being created or scheduled, so neither may a start without it.
What can only be mended by a person (a URL that makes no sense, a user that is refused) ends a
start; a server that does not answer does not: the service goes on, every statement fails until the
server was reached and its schema brought up to date, and everybody who uses it lives with that as
with a server that was lost.
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
    """How patient a start is, and what comes after it."""

    start_seconds: float = 10.0
    """How long a start waits for the database, its schema included, before it goes on without."""
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 5.0
    """Pauses between later attempts: doubled from the first to the longest."""


class DeferredPool:
    """A pool whose server may not have been reached: then whatever is asked fails at once."""

    def __init__(self) -> None:
        self._pool: asyncpg.Pool | None = None

    @property
    def is_open(self) -> bool:
        """Whether the server was ever reached."""
        return self._pool is not None

    def open(self, pool: asyncpg.Pool) -> None:
        """Use this pool from now on."""
        self._pool = pool

    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Any]:
        """Have a connection of one's own for a while."""
        connection: AbstractAsyncContextManager[Any] = self._reached().acquire(timeout=timeout)
        return connection

    async def fetch(self, query: str, *values: object) -> list[asyncpg.Record]:
        """Run a query and return its rows."""
        rows: list[asyncpg.Record] = await self._reached().fetch(query, *values)
        return rows

    async def fetchrow(self, query: str, *values: object) -> asyncpg.Record | None:
        """Run a query and return its first row."""
        return await self._reached().fetchrow(query, *values)

    async def fetchval(self, query: str, *values: object) -> Any:  # noqa: ANN401 - any column
        """Run a query and return the first value of its first row."""
        return await self._reached().fetchval(query, *values)

    def _reached(self) -> asyncpg.Pool:
        if self._pool is None:
            raise ConnectionError("the server was not reached yet")
        return self._pool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredDatabase(Database):
    """A database that `keep_alive` looks for until it is there."""

    pool: DeferredPool
    reach: Callable[[], Awaitable[None]]
    settings: DeferredSettings

    @property
    def is_open(self) -> bool:
        """Whether it was reached."""
        return self.pool.is_open

    async def keep_alive(self) -> NoReturn:
        """Reach the server, however long that takes, then do what there is to do for any other."""
        pause = self.settings.first_retry_seconds
        while not self.is_open:
            try:
                await self.reach()
            except (SettingsError, BackendError) as error:
                extra = {"pause_seconds": pause, "error": str(error)}
                logger.warning("database is not used, will retry", extra=extra)
                await asyncio.sleep(pause)
                pause = min(pause * 2, self.settings.longest_retry_seconds)
        logger.info("database is used")
        await Database.keep_alive(self)


@contextlib.asynccontextmanager
async def open_deferred(
    url: str,
    *,
    application_name: str,
    prepare: Prepare,
    settings: DeferredSettings | None = None,
) -> AsyncIterator[Database]:
    """Open a database, now or later; `prepare` brings its schema up to date before it is used.

    An embedded one is ours to start, so it is there, or the start fails.
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
    """Raise only what a person has to mend."""
    try:
        async with asyncio.timeout(settings.start_seconds):
            await reach()
    except (UnreachableError, BackendError, TimeoutError) as error:
        reason = str(error) or f"not usable within {settings.start_seconds:g} s"
        logger.warning("starting without the database", extra={"error": reason})


async def _open(url: str, *, application_name: str, prepare: Prepare) -> asyncpg.Pool:
    pool = await connect_pool(url, application_name=application_name, settings=PoolSettings())
    try:
        await prepare(pool)
    except BaseException:
        await close_pool(pool)
        raise
    return pool
