"""Current usage in the memory of each process, so that rules never wait for Postgres.

    usage(scope)    the last usage read from Postgres, plus changes that this process made since
    run()           keeps it current, on one connection that listens, reads and notifies
    assume(charge)  counts a gang that was admitted while Postgres was unavailable

Notifications carry no data. A process that changes the ledger sends one NOTIFY after the commit,
for many changes at a time: a NOTIFY inside the transaction would serialize all commits of the
server. After a notification of another process, and every second without one, the cache reads the
holdings that may have changed since its version. Versions are transaction numbers, and the next
read starts at the oldest transaction that was still running at the last one. So neither a lost
notification nor a late commit can hide a change, and reading a change twice is harmless. A new
connection reads everything, since it may lead to another server.
"""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

import asyncpg
import orjson
from asyncpg.prepared_stmt import PreparedStatement

from policy.errors import BackendError, SettingsError
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import GangKey
from state.database.database import (
    backend_errors,
    describe_server,
    is_behind_pooler,
    target_session,
)
from state.database.queries import sql
from state.ledger import rows
from state.ledger.assumed_charges import AssumedCharges

logger = logging.getLogger(__name__)

CHANNEL = "cellgate_usage"
_FLAG = "--database-listen-url"
_EVERYTHING = 0
_MOST_EXPECTED = 500
"""Assumed charges that one read looks up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """How often usage is read, and how long Postgres may take."""

    read_seconds: float = 1.0
    """The longest time between two reads, and so the effect of a lost notification."""

    gather_seconds: float = 0.01
    """How long notifications are gathered before a read; limits the reads per second."""

    timeout_seconds: float = 5.0
    """How long Postgres may take to answer before a new connection is opened."""

    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    """The pause between attempts to connect doubles from the first to the longest, with jitter."""

    assumed_seconds: float = 60.0
    """How long an assumed charge that the ledger lacks still counts once Postgres is back: long
    enough for the leader to reconcile."""


class UsageCache:
    """The usage of all scopes. Used from one event loop; only `run` needs it to run."""

    def __init__(
        self,
        listen_url: str,
        settings: CacheSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`listen_url` is the address of Postgres itself, not of a connection pooler."""
        self._url = listen_url
        self._settings = settings or CacheSettings()
        self._clock = clock
        self._now = now
        self._known: dict[Scope, ScopeUsage] = {}
        self.assumed = AssumedCharges()
        """Charges that only this process counts."""
        self._version = _EVERYTHING
        self._fresh_at: float | None = None
        self._back_at: float | None = None
        self._woken = asyncio.Event()
        self._must_notify = False
        self._must_read = True
        self._name = uuid.uuid4().hex
        self.resyncs = 0
        """Times that everything was read: once for each connection."""

    @property
    def is_known(self) -> bool:
        """Whether usage was read at least once."""
        return self._fresh_at is not None

    @property
    def staleness_seconds(self) -> float:
        """Time since usage was last read; infinite if it never was."""
        return float("inf") if self._fresh_at is None else self._clock() - self._fresh_at

    def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used by now. Never waits."""
        return self.assumed.add_to(self._known_of(scope).advance(self._now()))

    def held(self, scope: Scope) -> ScopeUsage:
        """Return the same without updating the leaf-cell-time: cheaper, for rules."""
        return self.assumed.add_to(self._known_of(scope))

    def _known_of(self, scope: Scope) -> ScopeUsage:
        return self._known.get(scope) or ScopeUsage(scope=scope)

    def observe(self, usages: Sequence[ScopeUsage]) -> None:
        """Take in usage that a write of this process changed, and notify other processes.

        An empty sequence means that the changed scopes are not known: they are read.
        """
        self._keep_newer(usages)
        self._must_notify = True
        self._must_read |= not usages
        self._woken.set()

    def assume(self, charge: Charge, *, held: Charge | None = None) -> None:
        """Count a charge that Postgres does not have, or may not have.

        Postgres already counts what is `held` of the gang.
        """
        self.assumed.add(charge, held=held, now=self._clock())

    async def check(self) -> None:
        """Raise SettingsError if a connection to the URL fails: for start-up."""
        where = describe_server(self._url, flag=_FLAG)
        try:
            with backend_errors("connecting"):
                async with self._connect():
                    pass
        except (BackendError, ValueError) as error:
            cause = type(error.__cause__ or error).__name__
            raise SettingsError(
                f"cannot listen to PostgreSQL at {where} ({cause}): check {_FLAG}, and that the "
                "server is running"
            ) from error

    async def run(self) -> NoReturn:
        """Keep usage current until cancelled; SettingsError if the URL leads to a pooler."""
        pause = self._settings.first_retry_seconds
        while True:
            resyncs = self.resyncs
            try:
                with backend_errors("reading usage"):
                    async with self._connect() as connection:
                        await self._follow(connection)
            except BackendError as error:
                if self.resyncs > resyncs:  # the connection worked for a while
                    pause = self._settings.first_retry_seconds
                logger.warning(
                    "usage not read, will retry",
                    extra={"pause_seconds": pause, "error": str(error)},
                )
            # Jitter: replicas that lost the same server do not reconnect all at once.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(pause * 2, self._settings.longest_retry_seconds)

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(
            self._url,
            timeout=self._settings.timeout_seconds,
            command_timeout=self._settings.timeout_seconds,
            target_session_attrs=target_session(self._url),
            # Without prepared statements the check for a pooler works through a pooler.
            statement_cache_size=0,
        )
        try:
            if await is_behind_pooler(connection):
                raise SettingsError(
                    f"{describe_server(self._url)} is a connection pooler such as PgBouncer, which "
                    "does not forward notifications: set the direct address of PostgreSQL with "
                    f"{_FLAG}"
                )
            yield connection
        finally:
            connection.terminate()

    async def _follow(self, connection: asyncpg.Connection) -> NoReturn:
        await connection.add_listener(CHANNEL, self._on_notification)
        connection.add_termination_listener(lambda _: self._wake())
        announce = await connection.prepare(sql("announce_usage"))
        changes = await connection.prepare(sql("usage_changes"))
        self._version, self._back_at, self._must_read = _EVERYTHING, None, True
        while True:
            # Cleared before the read: a notification during the read causes another one.
            self._woken.clear()
            if self._must_notify:  # first, so that other processes do not wait for the read
                self._must_notify = False
                await announce.fetchval(self._name)
            if self._is_read_due:
                self._must_read = False
                await self._read(connection, changes)
            await self._wait()

    @property
    def _is_read_due(self) -> bool:
        """Whether Postgres may have newer usage; the changes of this process are known."""
        is_old = self.staleness_seconds >= self._settings.read_seconds
        return self._must_read or is_old or bool(self.assumed)

    async def _wait(self) -> None:
        """Wait for a change, and gather the ones that follow; without one, read after a while."""
        try:
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(self._settings.read_seconds):
                await self._woken.wait()
        except TimeoutError:
            self._must_read = True
        await asyncio.sleep(self._settings.gather_seconds)

    def _on_notification(
        self, _connection: object, _pid: int, _channel: str, payload: object
    ) -> None:
        if payload != self._name:
            self._wake()

    def _wake(self) -> None:
        self._must_read = True
        self._woken.set()

    async def _read(self, connection: asyncpg.Connection, changes: PreparedStatement) -> None:
        """Read the usage that may have changed."""
        began = self._clock()
        # In this order, a charge made in between counts twice for a moment, but never not at all.
        charged = await self._find_charged(connection)
        row = await changes.fetchrow(self._version)
        assert row is not None
        if row["version"] < self._version:
            raise ConnectionResetError("the server lost transactions: reading everything again")
        if self._version == _EVERYTHING:
            self._known = {}
            self.resyncs += 1
        # Most of it is known already: each write of this process returned the usage it made.
        news = filter(self._is_news, orjson.loads(row["usage"]))
        self._known |= {usage.scope: usage for usage in map(rows.from_usage, news)}
        self._version = row["version"]
        self._fresh_at = began
        self._drop_assumed(charged)

    async def _find_charged(self, connection: asyncpg.Connection) -> set[GangKey]:
        gangs = self.assumed.expected(_MOST_EXPECTED)
        if not gangs:
            return set()
        names = [gang.namespace for gang in gangs], [gang.stored_name for gang in gangs]
        found = await connection.fetch(sql("charged_gangs"), *names)
        return {rows.from_gang(row) for row in found}

    def _drop_assumed(self, charged: Iterable[GangKey]) -> None:
        """Drop charges that the ledger has, or has had enough time to get."""
        for gang in charged:
            self.assumed.forget(gang)
        now = self._clock()
        self._back_at = self._back_at or now
        too_old = now - self._settings.assumed_seconds
        if self._back_at < too_old:
            self.assumed.drop_older(too_old)

    def _is_news(self, row: rows.Row) -> bool:
        known = self._known.get(rows.scope_of(row))
        return known is None or known.version < row["version"]

    def _keep_newer(self, usages: Iterable[ScopeUsage]) -> None:
        for usage in usages:
            known = self._known.get(usage.scope)
            if known is None or known.version < usage.version:
                self._known[usage.scope] = usage
