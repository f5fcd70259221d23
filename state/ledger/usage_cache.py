"""Current usage in the memory of every process, so that a rule never waits for Postgres.

    reads     `usage(scope)`: what was known last, plus what this process knows better
    fresh     `run()`: one connection of its own that listens, looks and announces
    degraded  `assume(charge)`: what was let in while Postgres did not answer (`assumed_charges`)

Notifications are hints, not data. Whoever changes the ledger announces it after the commit, many
changes at a time: a NOTIFY inside the transaction would make all commits of the server follow each
other. On a hint of another process, and every second without one, the cache asks for the holdings
that may have changed since the version it has. Versions are numbers of transactions: the next
question starts at the oldest one that was still running at the last. So no change can slip through
a gap, neither by a lost hint nor by a late commit, and what is seen twice does no harm. A new
connection starts from everything, since it may lead to another server.
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
from policy.quotas.limits import Scope
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
from state.ledger.ledger import Charge, ScopeUsage

logger = logging.getLogger(__name__)

CHANNEL = "cellgate_usage"
_FLAG = "--database-listen-url"
_EVERYTHING = 0
_MOST_EXPECTED = 500
"""Assumed charges that one look looks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """How fresh, and how patient."""

    look_seconds: float = 1.0
    """Longest time between two looks: how long a lost hint can go unnoticed."""

    gather_seconds: float = 0.01
    """How long hints are gathered before a look: at most so many looks per second."""

    timeout_seconds: float = 5.0
    """How long Postgres may take to answer before another connection is tried."""

    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    """Pauses between attempts to connect: doubled, with some chance in it."""

    assumed_seconds: float = 60.0
    """How long an assumed charge counts that the ledger does not have, from when it is back: long
    enough for the leader to reconcile."""


class UsageCache:
    """Usage of all scopes. Used from one event loop; only `run` needs it to run."""

    def __init__(
        self,
        listen_url: str,
        settings: CacheSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`listen_url` leads to Postgres itself, not to a pooler."""
        self._url = listen_url
        self._settings = settings or CacheSettings()
        self._clock = clock
        self._now = now
        self._known: dict[Scope, ScopeUsage] = {}
        self.assumed = AssumedCharges()
        """What counts here only."""
        self._version = _EVERYTHING
        self._fresh_at: float | None = None
        self._back_at: float | None = None
        self._woken = asyncio.Event()
        self._is_to_announce = False
        self._is_to_look = True
        self._name = uuid.uuid4().hex
        self.resyncs = 0
        """How often everything was read: once per connection."""

    @property
    def is_known(self) -> bool:
        """Whether usage was ever read."""
        return self._fresh_at is not None

    @property
    def staleness_seconds(self) -> float:
        """Time since what is known was known to be true; infinite if it never was."""
        return float("inf") if self._fresh_at is None else self._clock() - self._fresh_at

    def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used by now, as far as we know. Never waits."""
        return self.assumed.add_to(self._known_of(scope).advance(self._now()))

    def held(self, scope: Scope) -> ScopeUsage:
        """Return the same with leaf-cell-time as it was counted last: cheaper, for rules."""
        return self.assumed.add_to(self._known_of(scope))

    def _known_of(self, scope: Scope) -> ScopeUsage:
        return self._known.get(scope) or ScopeUsage(scope=scope)

    def observe(self, usages: Sequence[ScopeUsage]) -> None:
        """Take in what a write of this process has changed, and tell the others.

        Empty if it is not known what exactly: it is looked up.
        """
        self._keep_newer(usages)
        self._is_to_announce = True
        self._is_to_look |= not usages
        self._woken.set()

    def assume(self, charge: Charge, *, held: int = 0) -> None:
        """Count a charge that Postgres did not, or may not have, heard of.

        It counts `held` leaf cells of the gang already.
        """
        self.assumed.add(charge, held=held, now=self._clock())

    async def check(self) -> None:
        """Raise SettingsError if the URL can never work, or does not now: for start-up."""
        where = describe_server(self._url, flag=_FLAG)
        try:
            with backend_errors("looking for it"):
                async with self._connect():
                    pass
        except (BackendError, ValueError) as error:
            cause = type(error.__cause__ or error).__name__
            raise SettingsError(
                f"cannot listen to PostgreSQL at {where} ({cause}): check {_FLAG}, and that it runs"
            ) from error

    async def run(self) -> NoReturn:
        """Keep usage fresh until cancelled; SettingsError if the URL leads to a pooler."""
        pause = self._settings.first_retry_seconds
        while True:
            resyncs = self.resyncs
            try:
                with backend_errors("following usage"):
                    async with self._connect() as connection:
                        await self._follow(connection)
            except BackendError as error:
                if self.resyncs > resyncs:  # it worked for a while
                    pause = self._settings.first_retry_seconds
                logger.warning(
                    "usage is not followed, will retry",
                    extra={"pause_seconds": pause, "error": str(error)},
                )
            # Replicas that lost the same server do not come back all at once.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(pause * 2, self._settings.longest_retry_seconds)

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(
            self._url,
            timeout=self._settings.timeout_seconds,
            command_timeout=self._settings.timeout_seconds,
            target_session_attrs=target_session(self._url),
            # Works through a pooler, too: long enough to see that there is one, and say so.
            statement_cache_size=0,
        )
        try:
            if await is_behind_pooler(connection):
                raise SettingsError(
                    f"{describe_server(self._url)} is a connection pooler such as PgBouncer, which "
                    "does not pass notifications on: give the direct address of PostgreSQL with "
                    f"{_FLAG}"
                )
            yield connection
        finally:
            connection.terminate()

    async def _follow(self, connection: asyncpg.Connection) -> NoReturn:
        await connection.add_listener(CHANNEL, self._hear)
        connection.add_termination_listener(lambda _: self._wake())
        announce = await connection.prepare(sql("announce_usage"))
        changes = await connection.prepare(sql("usage_changes"))
        self._version, self._back_at, self._is_to_look = _EVERYTHING, None, True
        while True:
            # Before the look: what is announced during it is looked at again.
            self._woken.clear()
            if self._is_to_announce:  # first: others should not wait for us
                self._is_to_announce = False
                await announce.fetchval(self._name)
            if self._must_look:
                self._is_to_look = False
                await self._look(connection, changes)
            await self._wait()

    @property
    def _must_look(self) -> bool:
        """Whether anybody may know more than we do; what we did ourselves is known."""
        is_old = self.staleness_seconds >= self._settings.look_seconds
        return self._is_to_look or is_old or bool(self.assumed)

    async def _wait(self) -> None:
        """Wait for news, and gather what comes with them; look once there were none for long."""
        try:
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(self._settings.look_seconds):
                await self._woken.wait()
        except TimeoutError:
            self._is_to_look = True
        await asyncio.sleep(self._settings.gather_seconds)

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload != self._name:
            self._wake()

    def _wake(self) -> None:
        self._is_to_look = True
        self._woken.set()

    async def _look(self, connection: asyncpg.Connection, changes: PreparedStatement) -> None:
        """Read what may have changed."""
        began = self._clock()
        # In this order: what is charged in between counts twice for a moment, and never not at all.
        charged = await self._find_charged(connection)
        row = await changes.fetchrow(self._version)
        assert row is not None
        if row["version"] < self._version:
            raise ConnectionResetError("the server is behind what it was: read everything again")
        if self._version == _EVERYTHING:
            self._known = {}
            self.resyncs += 1
        # Most of it is known: every write of ours was answered with what it made of its scopes.
        news = filter(self._is_news, orjson.loads(row["usage"]))
        self._known |= {usage.scope: usage for usage in map(rows.from_usage, news)}
        self._version = row["version"]
        self._fresh_at = began
        self._drop_assumed(charged)

    async def _find_charged(self, connection: asyncpg.Connection) -> set[GangKey]:
        gangs = self.assumed.expected(_MOST_EXPECTED)
        if not gangs:
            return set()
        names = [gang.namespace for gang in gangs], [gang.name for gang in gangs]
        found = await connection.fetch(sql("charged_gangs"), *names)
        return {rows.from_gang(row) for row in found}

    def _drop_assumed(self, charged: Iterable[GangKey]) -> None:
        """The ledger has them, or has been back for long enough to get them."""
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
