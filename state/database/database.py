"""Opens the database of `--database-url`, and translates errors of Postgres.

At start-up every failure is a SettingsError: one line that says what to do, within seconds. Later
it is a BackendError, since Postgres may come back. No message shows a password: a URL that cannot
be parsed is not repeated, because its password may be the reason.
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

from policy.errors import BackendError, ConflictError, SettingsError
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
# Errors of a server that may be available later: no setting has to change.
_UNAVAILABLE = (OSError, asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError)
_STARTING_UP_PAUSE_SECONDS = 0.1
_EPOCH_IS_OVER = "CG001"
_CLOSE_SECONDS = 5.0
_START_AGAIN_SECONDS = 1.0


class UnreachableError(SettingsError):
    """The database does not answer: the address is wrong, or the server is unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """How this process uses Postgres."""

    connections: int = 8
    """The largest number of connections. If too small, statements wait for each other."""

    open_timeout_seconds: float = 5.0
    """How long an attempt to connect may take."""

    statement_timeout_seconds: float = 10.0
    """Postgres ends a statement that takes longer, so that a slow one frees its connection."""

    lock_timeout_seconds: float = 5.0
    """Postgres ends a statement that waits longer for a lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database."""

    pool: asyncpg.Pool

    url: str = field(repr=False)
    """The URL of the database for processes on this machine. May contain a password."""

    server: EmbeddedPostgres | None = None
    """The embedded server, if one is used."""

    @property
    def is_open(self) -> bool:
        """True once Postgres was reached; `deferred_database` may not have reached it yet."""
        return True

    async def keep_alive(self) -> NoReturn:
        """Restart an embedded server whenever it dies; wait forever for other servers."""
        while True:
            try:
                await self.wait_died()
            except BackendError as error:
                logger.warning("embedded server ended, restarting", extra={"error": str(error)})
                await self._start_again()

    async def wait_died(self) -> None:
        """Raise BackendError when an embedded server ends; wait forever for other servers."""
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
                logger.warning("embedded server not restarted", extra={"error": str(error)})
                await asyncio.sleep(_START_AGAIN_SECONDS)


@contextlib.asynccontextmanager
async def open_database(
    url: str, *, application_name: str, settings: PoolSettings | None = None
) -> AsyncIterator[Database]:
    """Connect to the database at `url`; start the server first if it is embedded."""
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
        raise SettingsError(f"--database-url has no directory; use {_FORMS}")
    return Path(directory)


def describe_server(url: str, *, flag: str = "--database-url") -> str:
    """Return the host and database of a URL, without user and password."""
    parts = _split(url, flag)
    user, _, hosts = parts.netloc.rpartition("@")
    # A `/` or `#` in a password ends the host part early: never show what may be a password.
    misplaced = not user and "@" in parts.path + parts.query + parts.fragment
    if misplaced or not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        raise SettingsError(
            f"{flag} is not valid; use {_FORMS}, with special characters of the password "
            "percent-encoded (%XX)"
        )
    hosts = unquote(hosts) or ",".join(parse_qs(parts.query).get("host", [])) or "its default host"
    database = unquote(parts.path.removeprefix("/"))
    return f"{hosts}, database {database}" if database else hosts


def _split(url: str, flag: str = "--database-url") -> SplitResult:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("postgresql", "postgres"):
            return parts
    raise SettingsError(f"{flag} is not valid; use {_FORMS}")


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
    """Connect to a server; SettingsError says what to do, UnreachableError if none answers."""
    where = describe_server(url)
    try:
        async with asyncio.timeout(settings.open_timeout_seconds):
            return await _connect_when_up(url, application_name, settings)
    except (*_FAILURES, ValueError) as error:
        kind = UnreachableError if isinstance(error, _UNAVAILABLE) else SettingsError
        raise kind(_explain(error, where, settings)) from error


async def _connect_when_up(url: str, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """Connect; retry while the server reports that it is starting up."""
    while True:
        try:
            return await _create_pool(url, application_name, settings)
        except asyncpg.CannotConnectNowError:
            await asyncio.sleep(_STARTING_UP_PAUSE_SECONDS)


async def _create_pool(url: str, application_name: str, settings: PoolSettings) -> asyncpg.Pool:
    """Connect directly, or in the way that a pooler like PgBouncer in transaction mode needs.

    Behind a pooler a client has no session of its own: settings in the connection request are
    refused, and prepared statements are lost. A pooler that accepts the settings is recognized by
    the process id of the server session, which differs from the one at the start of the connection.
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
    """Connect through a pooler: the client enforces timeouts, and PgBouncer forwards a cancel.

    The settings are also set in each server session, for statements whose client has died. They
    stay in that session, which PgBouncer only gives to clients of the same user and database.
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
        # Open one connection as a check; asyncpg keeps no minimum number of connections open.
        "min_size": 0,
        "init_size": 1,
        "max_size": settings.connections,
        "timeout": settings.open_timeout_seconds,
        # For a server that no longer responds; a live one enforces its own, shorter limit.
        "command_timeout": settings.statement_timeout_seconds * 1.5,
        # Statements leave no session state, so a reset would be a needless round trip.
        "reset": _no_reset,
        # Of several hosts, the one that accepts writes.
        "target_session_attrs": target_session(url),
    }
    return await asyncpg.create_pool(url, **{**defaults, **options})


async def _no_reset(connection: asyncpg.Connection) -> None:
    pass


def target_session(url: str) -> str | None:
    """Select the writable host of several, unless the URL selects one itself."""
    parts = _split(url)
    query = parse_qs(parts.query)
    is_several = "," in parts.netloc.rpartition("@")[2] or "," in query.get("host", [""])[0]
    return "read-write" if is_several and "target_session_attrs" not in query else None


async def is_behind_pooler(connection: asyncpg.Connection) -> bool:
    """Tell whether a pooler like PgBouncer is between this client and the server."""
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
    """Close gracefully within a bounded time; asyncpg drops the connections otherwise."""
    with contextlib.suppress(*_FAILURES):
        await asyncio.wait_for(pool.close(), _CLOSE_SECONDS)


def _explain(error: Exception, where: str, settings: PoolSettings) -> str:
    """Explain in one line why a database cannot be opened, and what to do."""
    match error:
        case asyncpg.InvalidCatalogNameError():
            return f"PostgreSQL at {where}: the database does not exist; create it with createdb"
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
            # asyncpg quotes parts of the URL in its message, so the message is not repeated.
            return f"--database-url is not valid ({type(error).__name__}); use {_FORMS}"
    return (
        f"cannot reach PostgreSQL at {where}: {reason}; check --database-url, and that the server "
        "is running"
    )


@contextlib.contextmanager
def backend_errors(doing: str) -> Iterator[None]:
    """Raise BackendError for failures of Postgres or of the connection to it."""
    try:
        yield
    except _FAILURES as error:
        kind = type(error).__name__
        said = f"{kind}: {_first_line(error)}" if str(error) else kind
        why = "it did not answer in time" if isinstance(error, TimeoutError) else said
        raise BackendError(f"Postgres failed while {doing}: {why}") from error


@contextlib.contextmanager
def leader_errors() -> Iterator[None]:
    """Raise ConflictError where Postgres refuses a write because the leader's epoch is over."""
    try:
        yield
    except asyncpg.PostgresError as error:
        if error.sqlstate == _EPOCH_IS_OVER:
            raise ConflictError(str(error)) from error
        raise


@contextlib.asynccontextmanager
async def leader_calls(doing: str, *, timeout_seconds: float = 10.0) -> AsyncIterator[None]:
    """Translate errors of Postgres, and a server that does not answer the leader in time."""
    with backend_errors(doing), leader_errors():
        async with asyncio.timeout(timeout_seconds):
            yield


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
