"""The decision log: a row for everything the services decide, written behind the answer.

`append` only puts a record into memory, so neither Postgres nor a disk is ever in the way of an
answer. `run`, a task of the caller's, writes what is pending in batches, in order, and tries again
for as long as Postgres is away. With a spool, what Postgres has not taken within a moment goes to
disk and from there to Postgres when it is back, before anything younger. Each record carries its
own key and the store skips keys it has, so what is of unknown fate is simply written again.

A record is *acknowledged* when Postgres or the spool has it: from then on it survives a kill -9.
With a mirror it does so from the beginning: the process that comes next takes over what this one
had in memory. What can be lost, and is counted: in `dropped`, records that find no room (the
newest, since older ones are acknowledged), that Postgres will never take, or that a newer leader's
epoch forbids; in `lost`, those that a killed process had not yet got acknowledged, nor mirrored.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from policy.errors import BackendError
from state.log.positions import END, Position
from state.log.records import DecisionRecord
from state.log.spool.mirror import Mirror
from state.log.spool.record_spool import RecordMirror, RecordSpool, uninterrupted
from state.log.spool.spool import Spool

logger = logging.getLogger(__name__)

_MOST_MOVED = 2000
"""Records that go to disk at once: a file is written while others wait for it."""


class DecisionStore(Protocol):
    """Where records end up: `state.log.postgres` or `state.log.memory`."""

    async def insert(self, records: Sequence[DecisionRecord]) -> Sequence[DecisionRecord]:
        """Store all records, in order, or none; skips those whose key is stored already.

        Returns those that it refuses: of an older epoch, and decided after a newer one of their
        service had begun. Raises BackendError if it is not known whether it stored them (try
        again), and ValueError if one of them can never be stored.
        """

    async def recent(
        self,
        limit: int,
        *,
        subject: str | None = None,
        with_observations: bool = False,
        before: Position = END,
    ) -> list[DecisionRecord]:
        """Return the newest records older than `before`, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How the log is written."""

    capacity: int = 100_000
    """Records kept in memory while Postgres is away, about 1 kB each; more are dropped."""

    batch_size: int = 500
    """Records in one statement. Large ones hold a connection longer, small ones cost more."""

    gather_seconds: float = 0.05
    """How long the first of a batch waits for others: a statement costs as much as dozens of rows.
    Shorter than it takes a record to get to the spool."""

    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    """Pauses between attempts while Postgres is away: doubled from the first to the longest."""

    drain_seconds: float = 5.0
    """How long a stopping process may take to write what is pending."""

    spool_after_seconds: float = 0.1
    """How long Postgres may take before records go to the spool: what a kill -9 can cost."""

    sync_seconds: float = 1.0
    """How often the spool is synced to disk: what the death of the machine can cost."""


class DecisionLog:
    """Write-behind log over a store. Used from one event loop; `append` needs none."""

    def __init__(
        self,
        store: DecisionStore,
        settings: LogSettings | None = None,
        *,
        spool: Spool | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        self._store = store
        self._settings = settings or LogSettings()
        self._buffer: deque[DecisionRecord] = deque()
        self._spool = RecordSpool(spool) if spool else None
        self._not_empty = asyncio.Event()
        self._turn = asyncio.Lock()
        self._choice = asyncio.Lock()
        self._appended = 0
        self._moves = 0
        self._spooled = 0
        self._written = 0
        self._refused = 0
        self._deposed = 0
        self._overflowed = 0
        if self._spool and self._spool.count:
            self._not_empty.set()
        self._mirror = RecordMirror(mirror) if mirror else None
        self._take_over()

    @property
    def pending(self) -> int:
        """Records that wait to be written to the store."""
        return len(self._buffer) + (self._spool.count if self._spool else 0)

    @property
    def acknowledged(self) -> int:
        """How many of the records appended here, oldest first, are settled or in the spool."""
        return self._appended - len(self._buffer)

    @property
    def unacknowledged(self) -> int:
        """Records that are in memory only: a kill -9 now would lose them."""
        return len(self._buffer)

    @property
    def spooled(self) -> int:
        """Records that have gone through the spool."""
        return self._spooled

    @property
    def written(self) -> int:
        """Records that the store has taken from this log."""
        return self._written

    @property
    def dropped(self) -> int:
        """Records that will never be written."""
        return self._overflowed + self._refused + self._deposed

    @property
    def dropped_by_reason(self) -> Mapping[str, int]:
        """Records that are missing in the store, those of the process before us included."""
        return {
            "full": self._overflowed,
            "refused": self._refused,
            "deposed": self._deposed,
            "killed": self.lost,
            "unreadable": self._spool.unreadable if self._spool else 0,
        }

    @property
    def lost(self) -> int:
        """Records that the process before this one had not got acknowledged when it was killed."""
        return self._spool.lost if self._spool else 0

    @property
    def _settled(self) -> int:
        return self._written + self._refused + self._deposed

    def append(self, record: DecisionRecord) -> None:
        """Take a record to be written later. Never waits and never raises."""
        if len(self._buffer) >= self._settings.capacity:
            self._overflowed += 1
            return
        self._buffer.append(record)
        self._appended += 1
        if self._mirror:
            self._mirror.append(record)
        self._measure()
        self._not_empty.set()

    def _take_over(self) -> None:
        """Go on with what a killed process had in memory."""
        left = self._mirror.left if self._mirror else []
        if self._spool:
            self._spool.note_taken_over(len(left))
        for record in left:
            self.append(record)

    async def recent(
        self,
        limit: int,
        *,
        subject: str | None = None,
        with_observations: bool = False,
        before: Position = END,
    ) -> list[DecisionRecord]:
        """Return the newest written records, newest first; those still pending are not seen."""
        return await self._store.recent(
            limit, subject=subject, with_observations=with_observations, before=before
        )

    async def flush(self) -> None:
        """Write everything that is pending now; raises BackendError if the store is away."""
        target = self._settled + self.pending
        while self._settled < target and self.pending:
            await self._write_batch()

    async def run(self) -> NoReturn:
        """Write behind until cancelled, and then what can still be written in a bounded time."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write_forever())
                if self._spool:
                    group.create_task(self._spool_forever())
                    group.create_task(self._sync_forever())
        finally:
            await self._drain()
        raise AssertionError("the tasks above run for ever")

    async def _write_forever(self) -> NoReturn:
        while True:
            await self._not_empty.wait()
            if self.pending < self._settings.batch_size:
                await asyncio.sleep(self._settings.gather_seconds)
            await self._write_with_patience()

    async def _spool_forever(self) -> NoReturn:
        """Move to disk what the store has not taken within a moment."""
        assert self._spool is not None
        while True:
            await self._not_empty.wait()
            late = self._appended
            await asyncio.sleep(self._settings.spool_after_seconds)
            if self._spool.count:  # behind that, everything is late
                late = self._appended
            while self.acknowledged < late and await uninterrupted(self._move_to_spool()):
                pass

    async def _sync_forever(self) -> NoReturn:
        assert self._spool is not None
        while True:
            await asyncio.sleep(self._settings.sync_seconds)
            await uninterrupted(self._spool.sync())

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
            await self._leave_behind(error)

    async def _leave_behind(self, error: Exception) -> None:
        """Keep for the next process what the store did not take."""
        if self._spool:
            while self._buffer and await self._move_to_spool():
                pass
            await self._spool.sync()
            if self._spool.count:
                logger.warning("decisions left in the spool", extra={"pending": self._spool.count})
        if self._buffer:
            logger.error(
                "decisions lost at shutdown",
                extra={"pending": len(self._buffer), "error": str(error)},
            )

    async def _move_to_spool(self) -> bool:
        """Put the oldest records that are in memory on disk; False if there is no room."""
        assert self._spool is not None
        async with self._choice:
            records = list(itertools.islice(self._buffer, _MOST_MOVED))
            spooled = await self._spool.append(records)
            moved = spooled.kept + spooled.refused
            for _ in range(moved):
                self._buffer.popleft()
            self._moves += moved
            self._spooled += spooled.kept
            self._refused += spooled.refused
            self._measure()
        return moved > 0

    async def _write_batch(self) -> None:
        """Move the oldest records to the store: from the spool, else from memory."""
        async with self._turn:
            batch = await self._oldest()
            gone = await self._insert(batch.records)
            await uninterrupted(self._settle(batch, gone))

    async def _oldest(self) -> "_Batch":
        async with self._choice:
            size = self._settings.batch_size
            if self._spool and (spooled := await uninterrupted(self._spool.peek(size))):
                return _Batch(records=spooled, is_spooled=True, moves=self._moves)
            buffered = list(itertools.islice(self._buffer, size))
            return _Batch(records=buffered, is_spooled=False, moves=self._moves)

    async def _settle(self, batch: "_Batch", gone: "_Gone") -> None:
        """Forget records that the store has taken, or never will."""
        async with self._choice:
            if batch.is_spooled:
                assert self._spool is not None
                await self._spool.take()
            elif batch.moves != self._moves:
                return  # they went to the spool meanwhile: written again from there, counted then
            else:
                for _ in batch.records:
                    self._buffer.popleft()
            self._refused += gone.refused
            self._deposed += gone.deposed
            self._written += len(batch.records) - gone.refused - gone.deposed
            self._measure()
            if not self.pending:
                self._not_empty.clear()

    def _measure(self) -> None:
        if self._mirror:
            self._mirror.acknowledge(self.acknowledged)
        if self._spool:
            self._spool.measure(appended=self._appended, acknowledged=self.acknowledged)

    async def _insert(self, records: Sequence[DecisionRecord]) -> "_Gone":
        """Store records but for those that can never be stored; return how many those are.

        Halving finds them, so that one bad row neither stops the log nor costs its neighbours.
        """
        try:
            deposed = await self._store.insert(records)
        except ValueError as error:
            if len(records) > 1:
                middle = len(records) // 2
                first = await self._insert(records[:middle])
                return first.plus(await self._insert(records[middle:]))
            _log_refusal(records[0], error)
            return _Gone(refused=1, deposed=0)
        if deposed:
            _log_deposed(deposed)
        return _Gone(refused=0, deposed=len(deposed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """The oldest records, where they are from, and how many had gone to the spool by then."""

    records: list[DecisionRecord]
    is_spooled: bool
    moves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """How many records of a batch will never be written."""

    refused: int
    deposed: int

    def plus(self, other: "_Gone") -> "_Gone":
        """Add up."""
        return _Gone(refused=self.refused + other.refused, deposed=self.deposed + other.deposed)


def _log_refusal(record: DecisionRecord, error: ValueError) -> None:
    logger.error(
        "decision refused by the store",
        extra={"key": str(record.key), "subject": record.subject, "error": str(error)},
    )


def _log_deposed(records: Sequence[DecisionRecord]) -> None:
    first = records[0]
    logger.error(
        "decisions of a deposed leader refused",
        extra={"service": first.service, "epoch": first.epoch, "rows": len(records)},
    )
