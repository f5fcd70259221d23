"""From `--database-url` to a connection pool, and from Postgres' errors to ours.

At start-up everything that is wrong is a SettingsError of one line that says what to do, within a
few seconds. Later it is a BackendError: Postgres may come back. No message shows a password: what
is not understood of a URL is not repeated, because a password may be what broke it.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import asyncpg

from policy.errors import BackendError, SettingsError
from state.database.queries import sql
from state.embedded import EmbeddedPostgres

logger = logging.getLogger(__name__)

_EMBEDDED = "embedded:"
_FORMS = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or embedded:DIR"
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._%-]*)(:\d+)?")
_FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # also TimeoutError
)
# What says that it will be there later, or may be: nobody has to mend a setting.
_AWAY = (OSError, asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError)
_STARTING_UP_PAUSE_SECONDS = 0.1
_CLOSE_SECONDS = 5.0
_START_AGAIN_SECONDS = 1.0


class UnreachableError(SettingsError):
    """Nobody answers where the database should be: a mistake, or it is away for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """How this process uses Postgres."""

    connections: int = 8
    """At most so many at once. Too few, and statements wait for each other."""

    open_timeout_seconds: float = 5.0
    """How long start-up may take to reach Postgres before it gives up."""

    statement_timeout_seconds: float = 10.0
    """Postgres ends a statement that takes longer; a bad plan must not hold a connection."""

    lock_timeout_seconds: float = 5.0
    """Postgres ends a statement that waits longer for a lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database."""

    pool: asyncpg.Pool

    url: str = field(repr=False)
    """Where other processes on this machine reach the same database. May hold a password."""

    server: EmbeddedPostgres | None = None
    """The embedded server, if there is one."""

    @property
    def is_open(self) -> bool:
        """True once Postgres was reached; `deferred_database` may not have reached it yet."""
        return True

    async def keep_alive(self) -> NoReturn:
        """Start an embedded server again whenever it dies; for any other there is nothing to do."""
        while True:
            try:
                await self.wait_died()
            except BackendError as error:
                logger.warning("embedded server died, will start", extra={"error": str(error)})
                await self._start_again()

    async def wait_died(self) -> None:
        """Wait for the end of an embedded server, which raises BackendError; else for ever."""
        if self.server is not None:
            await self.server.wait_died()
        await asyncio.Event().wait()

    async def _start_again(self) -> None:
        assert self.server is not None
        while True:
            try:
                await self.server.start()
                return
            except SettingsError as error:
                logger.warning("embedded server does not start", extra={"error": str(error)})
                await asyncio.sleep(_START_AGAIN_SECONDS)


@contextlib.asynccontextmanager
async def open_database(
    url: str, *, application_name: str, settings: PoolSettings | None = None
) -> AsyncIterator[Database]:
    """Connect to the database at `url`, and first start it if it is an embedded one."""
    settings = settings or PoolSettings()
    directory = parse_embedded(url)
    if directory is None:
        async with _open_pool(url, application_name, settings) as pool:
            yield Database(pool=pool, url=url)
    else:
        async with (
            EmbeddedPostgres(directory) as server,
            _open_pool(server.url, application_name, settings) as pool,
        ):
            yield Database(pool=pool, url=server.url, server=server)


def parse_embedded(url: str) -> Path | None:
    """Return DIR of `embedded:DIR`, or None for the URL of a server."""
    if not url.startswith(_EMBEDDED):
        return None
    directory = url.removeprefix(_EMBEDDED)
    if not directory:
        raise SettingsError(f"--database-url names no directory; write {_FORMS}")
    return Path(directory)


def describe_server(url: str, *, flag: str = "--database-url") -> str:
    """Name the server and database of a URL, without user and password."""
    parts = _split(url, flag)
    user, _, hosts = parts.netloc.rpartition("@")
    # A `/` or `#` in a password ends the host part early: never show what might be a password.
    misplaced = not user and "@" in parts.path + parts.query + parts.fragment
    if misplaced or not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        raise SettingsError(
            f"{flag} is not understood; write {_FORMS}, with special characters of the "
            "password as %XX"
        )
    hosts = unquote(hosts) or ",".join(parse_qs(parts.query).get("host", [])) or "its default host"
    database = unquote(parts.path.removeprefix("/"))
    return f"{hosts}, database {database}" if database else hosts


def _split(url: str, flag: str = "--database-url") -> SplitResult:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("postgresql", "postgres"):
            return parts
    raise SettingsError(f"{flag} is not understood; write {_FORMS}")


@contextlib.asynccontextmanager
async def _open_pool(
    url: str, application_name: str, settings: PoolSettings
) -> AsyncIterator[asyncpg.Pool]:
    pool = await connect_pool(url, application_name=application_name, settings=settings)
    try:
        yield pool
    finally:
        await close_pool(pool)


async def connect_pool(url: str, *, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """Connect to a server; SettingsError says what to do, UnreachableError if nobody answers."""
    where = describe_server(url)
    try:
        async with asyncio.timeout(settings.open_timeout_seconds):
            return await _connect_when_up(url, application_name, settings)
    except (*_FAILURES, ValueError) as error:
        kind = UnreachableError if isinstance(error, _AWAY) else SettingsError
        raise kind(_explain(error, where, settings)) from error


async def _connect_when_up(url: str, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """Connect; a server that says it is just starting is given time."""
    while True:
        try:
            return await _create_pool(url, application_name, settings)
        except asyncpg.CannotConnectNowError:
            await asyncio.sleep(_STARTING_UP_PAUSE_SECONDS)


async def _create_pool(url: str, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """Connect the plain way, or as a pooler like PgBouncer in transaction mode needs it.

    There a session is nobody's own: settings do not come with the connection (it is refused) and
    statements that were prepared are gone. Without a word from the server, whoever is in between
    is known by the process that serves us: it is not the one that greeted us.
    """
    try:
        pool = await _open(url, settings, server_settings=_limits(application_name, settings))
    except asyncpg.ProtocolViolationError:  # PgBouncer: unsupported startup parameter
        return await _open_pooled(url, application_name, settings)
    async with pool.acquire() as connection:
        is_pooled = await is_behind_pooler(connection)
    if not is_pooled:
        return pool
    await close_pool(pool)
    return await _open_pooled(url, application_name, settings)


async def _open_pooled(url: str, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """What a setting of the server would end, the client ends: PgBouncer passes a cancel on.

    The settings are also made by hand, for statements whose client has died; they stay with the
    server's connection, which PgBouncer only lends to clients of the same user and database.
    """

    async def limit(connection: asyncpg.Connection) -> None:
        for name, value in _limits(application_name, settings).items():
            await connection.execute(sql("set_for_session"), name, value)

    return await _open(
        url,
        settings,
        server_settings={"application_name": application_name},
        statement_cache_size=0,
        command_timeout=settings.statement_timeout_seconds,
        init=limit,
    )


async def _open(url: str, settings: PoolSettings, **options: Any) -> asyncpg.Pool:  # noqa: ANN401
    defaults: dict[str, Any] = {
        # One connection at once, to see that it works; none is kept up by a task of asyncpg's own.
        "min_size": 0,
        "init_size": 1,
        "max_size": settings.connections,
        "timeout": settings.open_timeout_seconds,
        # For a server that is gone without a word; a live one enforces its own, shorter limit.
        "command_timeout": settings.statement_timeout_seconds * 1.5,
        # We leave nothing behind in a session, so there is nothing to reset: a round trip less.
        "reset": _leave_as_it_is,
        # Of several hosts, the one that can be written to.
        "target_session_attrs": target_session(url),
    }
    return await asyncpg.create_pool(url, **{**defaults, **options})


async def _leave_as_it_is(connection: asyncpg.Connection) -> None:
    pass


def target_session(url: str) -> str | None:
    """Which of several hosts to use, unless the URL says so itself."""
    parts = _split(url)
    query = parse_qs(parts.query)
    is_several = "," in parts.netloc.rpartition("@")[2] or "," in query.get("host", [""])[0]
    return "read-write" if is_several and "target_session_attrs" not in query else None


async def is_behind_pooler(connection: asyncpg.Connection) -> bool:
    """Tell whether something like PgBouncer lends us sessions of the server."""
    serving: int = await connection.fetchval(sql("backend_pid"))
    return bool(serving != connection.get_server_pid())


def _limits(application_name: str, settings: PoolSettings) -> dict[str, str]:
    return {
        "application_name": application_name,
        "statement_timeout": _milliseconds(settings.statement_timeout_seconds),
        "lock_timeout": _milliseconds(settings.lock_timeout_seconds),
        "idle_in_transaction_session_timeout": "60000",
    }


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


async def close_pool(pool: asyncpg.Pool) -> None:
    """Close politely within a bounded time; asyncpg cuts the connections if that fails."""
    with contextlib.suppress(*_FAILURES):
        await asyncio.wait_for(pool.close(), _CLOSE_SECONDS)


def _explain(error: Exception, where: str, settings: PoolSettings) -> str:
    """Say in one line what to do about a database that cannot be opened."""
    match error:
        case asyncpg.InvalidCatalogNameError():
            return f"PostgreSQL at {where}: there is no such database; create it with createdb"
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            advice = "check user and password in --database-url, and the server's pg_hba.conf"
            return f"PostgreSQL at {where} refuses the user ({_first_line(error)}): {advice}"
        case asyncpg.PostgresError() | asyncpg.InternalClientError():
            return f"PostgreSQL at {where} refuses the connection: {_first_line(error)}"
        case TimeoutError():
            reason = f"no answer within {settings.open_timeout_seconds:g} s"
        case OSError():
            reason = _first_line(error)
        case _:
            # asyncpg quotes from the URL, so its words are not repeated.
            return f"--database-url is not understood by asyncpg ({type(error).__name__}): {_FORMS}"
    return f"cannot reach PostgreSQL at {where}: {reason}; check --database-url, and that it runs"


@contextlib.contextmanager
def backend_errors(doing: str) -> Iterator[None]:
    """Turn failures of Postgres, or of the way to it, into BackendError."""
    try:
        yield
    except _FAILURES as error:
        kind = type(error).__name__
        raise BackendError(
            f"Postgres failed while {doing}: {kind}: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
