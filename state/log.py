"""The decision log: a row for everything the services decide, written behind the answer.

`append` only puts a record into memory, so Postgres is never in the way of an answer. `run`, a
task of the caller's, writes what is pending in batches, in order, and tries again for as long as
Postgres is away. A record leaves memory only when the store has it; since each carries its own
key and the store skips keys it has, a batch whose fate is unknown is simply written again.

What can be lost, and is counted in `dropped`: records that find no room, and records that Postgres
will never take. What is lost uncounted: what is pending when the process is killed.
"""

import asyncio
import itertools
import logging
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, Protocol

from policy.errors import BackendError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision. `at` has a time zone; `details` do not change once the record is appended."""

    at: datetime
    service: str
    kind: str
    subject: str
    outcome: str
    reason: str
    latency_seconds: float
    pod_uid: str | None = None
    policy_version: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    key: uuid.UUID = field(default_factory=uuid.uuid4)


class DecisionStore(Protocol):
    """Where records end up: `state.decisions` or `state.memory`."""

    async def insert(self, records: Sequence[DecisionRecord]) -> None:
        """Store all records, in order, or none; skips those whose key is stored already.

        Raises BackendError if it is not known whether it did (try again), and ValueError if one
        of them can never be stored.
        """

    async def recent(self, limit: int, *, subject: str | None = None) -> list[DecisionRecord]:
        """Return the newest records, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How the log is written."""

    capacity: int = 100_000
    """Records kept in memory while Postgres is away, about 1 kB each; more are dropped."""

    batch_size: int = 500
    """Records in one statement. Large ones hold a connection longer, small ones cost more."""

    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    """Pauses between attempts while Postgres is away: doubled from the first to the longest."""

    drain_seconds: float = 5.0
    """How long a stopping process may take to write what is pending."""


class DecisionLog:
    """Write-behind log over a store. Used from one event loop; `append` needs none."""

    def __init__(self, store: DecisionStore, settings: LogSettings | None = None) -> None:
        self._store = store
        self._settings = settings or LogSettings()
        self._pending: deque[DecisionRecord] = deque()
        self._not_empty = asyncio.Event()
        self._turn = asyncio.Lock()
        self._written = 0
        self._refused = 0
        self._overflowed = 0

    @property
    def pending(self) -> int:
        """Records that wait to be written."""
        return len(self._pending)

    @property
    def written(self) -> int:
        """Records that the store has taken from this log."""
        return self._written

    @property
    def dropped(self) -> int:
        """Records that will never be written."""
        return self._overflowed + self._refused

    @property
    def _settled(self) -> int:
        return self._written + self._refused

    def append(self, record: DecisionRecord) -> None:
        """Take a record to be written later. Never waits and never raises."""
        if len(self._pending) >= self._settings.capacity:
            self._overflowed += 1
            return
        self._pending.append(record)
        self._not_empty.set()

    async def recent(self, limit: int, *, subject: str | None = None) -> list[DecisionRecord]:
        """Return the newest written records, newest first; those still pending are not seen."""
        return await self._store.recent(limit, subject=subject)

    async def flush(self) -> None:
        """Write everything that is pending now; raises BackendError if the store is away."""
        target = self._settled + self.pending
        while self._settled < target:
            await self._write_batch()

    async def run(self) -> NoReturn:
        """Write behind until cancelled, and then what can still be written in a bounded time."""
        try:
            while True:
                await self._not_empty.wait()
                await self._write_with_patience()
        finally:
            await self._drain()

    async def _write_with_patience(self) -> None:
        """Write one batch, however long the store is away."""
        pause = self._settings.first_retry_seconds
        while True:
            try:
                return await self._write_batch()
            except BackendError as error:
                logger.warning(
                    "decisions not written, will retry",
                    extra={"pending": self.pending, "pause_seconds": pause, "error": str(error)},
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._settings.longest_retry_seconds)

    async def _drain(self) -> None:
        try:
            # Not asyncio.timeout: before Python 3.11.3 it fails in a task that is being cancelled.
            await asyncio.wait_for(self.flush(), self._settings.drain_seconds)
        except (BackendError, TimeoutError) as error:
            logger.error(
                "decisions lost at shutdown", extra={"pending": self.pending, "error": str(error)}
            )

    async def _write_batch(self) -> None:
        """Move the oldest records from memory to the store."""
        async with self._turn:
            batch = list(itertools.islice(self._pending, self._settings.batch_size))
            refused = await self._insert(batch)
            for _ in batch:
                self._pending.popleft()
            self._written += len(batch) - refused
            self._refused += refused
            if not self._pending:
                self._not_empty.clear()

    async def _insert(self, batch: Sequence[DecisionRecord]) -> int:
        """Store a batch but for records that can never be stored; return how many those are.

        Halving finds them, so that one bad record neither stops the log nor costs its neighbours.
        """
        if not batch:
            return 0
        try:
            await self._store.insert(batch)
        except ValueError as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                return await self._insert(batch[:middle]) + await self._insert(batch[middle:])
            logger.error(
                "decision refused by the store",
                extra={"key": str(batch[0].key), "subject": batch[0].subject, "error": str(error)},
            )
            return 1
        return 0
