"""The decision log: one record for each decision, written to Postgres after the answer.

`append` only stores a record in memory, so neither Postgres nor a disk delays an answer. `run`
writes pending records in batches, in order, and retries while Postgres is unavailable. With a
spool, records that Postgres has not taken after a short time go to disk, and from there to Postgres
before any newer record. Each record has its own key and the store skips keys that it has, so a
record is written again when it is unknown whether an earlier write succeeded.

A record is *acknowledged* once Postgres or the spool has it: from then on it survives `kill -9`.
With a mirror every record survives, because the next process takes over the records that were in
memory. Losses are counted. `dropped`: records without room in memory (the newest, since older ones
may be acknowledged), records that Postgres always refuses, and records that a newer leader's epoch
forbids. `lost`: records that were neither acknowledged nor mirrored when a process was killed.
"""

import asyncio
import itertools
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol

from policy.errors import BackendError
from state.log.positions import END, Position
from state.log.records import DecisionRecord
from state.log.spool.mirror import Mirror
from state.log.spool.record_spool import RecordMirror, RecordSpool, log_refusal, uninterrupted
from state.log.spool.spool import Spool

logger = logging.getLogger(__name__)

_FULL, _REFUSED, _DEPOSED = "full", "refused", "deposed"
_MOST_MOVED = 2000
"""Records that are written to disk in one step, while other steps wait."""


class DecisionStore(Protocol):
    """The storage of records: `state.log.postgres`, or its twin in memory for tests."""

    async def insert(self, records: Sequence[DecisionRecord]) -> Sequence[DecisionRecord]:
        """Store all records, in order, or none; skip records whose key is stored already.

        Returns the records that it refuses: those of an older epoch that were decided after a newer
        epoch of their service had begun. Raises BackendError if it is unknown whether the records
        were stored (retry), and ValueError if one of them can never be stored.
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

    async def of_kind(
        self, kind: str, subjects: Sequence[str], *, since: datetime, until: datetime, limit: int
    ) -> list[DecisionRecord]:
        """Return the records of one kind about some subjects, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How the log is written."""

    capacity: int = 100_000
    """Records kept in memory while Postgres is unavailable, about 1 kB each; more are dropped."""

    batch_size: int = 500
    """Records in one statement. Large batches hold a connection longer, small ones cost more."""

    gather_seconds: float = 0.05
    """How long the first record of a batch waits for others: a statement costs as much as dozens of
    rows. Must be shorter than `spool_after_seconds`."""

    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    """The pause between attempts doubles from the first to the longest."""

    drain_seconds: float = 5.0
    """How long a stopping process may take to write pending records."""

    spool_after_seconds: float = 0.1
    """How long Postgres may take before records go to the spool. A `kill -9` loses at most the
    records of this time."""

    sync_seconds: float = 1.0
    """How often the spool is synced to disk. A crash of the machine loses at most the records of
    this time."""


class DecisionLog:
    """A write-behind log over a store. Used from one event loop; `append` needs none."""

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
        self._moved = 0
        self._dropped: Counter[str] = Counter()
        self.spooled = 0
        """Records that went through the spool."""
        self.written = 0
        """Records that the store has taken."""
        if self._spool and self._spool.count:
            self._not_empty.set()
        self._mirror = RecordMirror(mirror) if mirror else None
        self._take_over()

    @property
    def pending(self) -> int:
        """Records that are not in the store yet."""
        return len(self._buffer) + (self._spool.count if self._spool else 0)

    @property
    def acknowledged(self) -> int:
        """How many appended records, oldest first, are written, dropped or in the spool."""
        return self._appended - len(self._buffer)

    @property
    def unacknowledged(self) -> int:
        """Records that are in memory only: a `kill -9` now would lose them without a mirror."""
        return len(self._buffer)

    @property
    def dropped(self) -> int:
        """Records of this process that will never be written."""
        return self._dropped.total()

    @property
    def dropped_by_reason(self) -> Mapping[str, int]:
        """Records that the store lacks, including those that the previous process lost."""
        return {
            **{reason: self._dropped[reason] for reason in (_FULL, _REFUSED, _DEPOSED)},
            "killed": self.lost,
            "unreadable": self._spool.unreadable if self._spool else 0,
        }

    @property
    def lost(self) -> int:
        """Records that the previous process lost when it was killed."""
        return self._spool.lost if self._spool else 0

    @property
    def _settled(self) -> int:
        return self.written + self._dropped[_REFUSED] + self._dropped[_DEPOSED]

    def append(self, record: DecisionRecord) -> None:
        """Accept a record to be written later. Never waits and never raises."""
        if len(self._buffer) >= self._settings.capacity:
            self._dropped[_FULL] += 1
            return
        self._buffer.append(record)
        self._appended += 1
        if self._mirror:
            self._mirror.append(record)
        self._measure()
        self._not_empty.set()

    def _take_over(self) -> None:
        """Append the records that a killed process had in memory."""
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
        """Return the newest written records, newest first; pending records are left out."""
        return await self._store.recent(
            limit, subject=subject, with_observations=with_observations, before=before
        )

    async def of_kind(
        self, kind: str, subjects: Sequence[str], *, since: datetime, until: datetime, limit: int
    ) -> list[DecisionRecord]:
        """Return the written records of one kind about some subjects, newest first."""
        return await self._store.of_kind(kind, subjects, since=since, until=until, limit=limit)

    async def flush(self) -> None:
        """Write all records that are pending now; BackendError if the store is unavailable."""
        target = self._settled + self.pending
        while self._settled < target and self.pending:
            await self._write_batch()

    async def run(self) -> NoReturn:
        """Write until cancelled, then write pending records for at most `drain_seconds`."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write_forever())
                if self._spool:
                    group.create_task(self._spool_forever())
                    group.create_task(self._sync_forever())
        finally:
            await self._drain()
        raise AssertionError("the tasks above never end")

    async def _write_forever(self) -> NoReturn:
        while True:
            await self._not_empty.wait()
            if self.pending < self._settings.batch_size:
                await asyncio.sleep(self._settings.gather_seconds)
            await self._write_with_patience()

    async def _spool_forever(self) -> NoReturn:
        """Move records to disk that the store has not taken within `spool_after_seconds`."""
        assert self._spool is not None
        while True:
            await self._not_empty.wait()
            late = self._appended
            await asyncio.sleep(self._settings.spool_after_seconds)
            if self._spool.count:  # the store takes spooled records first, so all others wait
                late = self._appended
            while self.acknowledged < late and await uninterrupted(self._move_to_spool()):
                pass

    async def _sync_forever(self) -> NoReturn:
        assert self._spool is not None
        while True:
            await asyncio.sleep(self._settings.sync_seconds)
            await uninterrupted(self._spool.sync())

    async def _write_with_patience(self) -> None:
        """Write one batch; retry while the store is unavailable."""
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
            await self._leave_in_spool(error)

    async def _leave_in_spool(self, error: Exception) -> None:
        """Keep records that the store did not take for the next process."""
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
        """Move the oldest records from memory to disk; False if there is no room."""
        assert self._spool is not None
        async with self._choice:
            records = list(itertools.islice(self._buffer, _MOST_MOVED))
            spooled = await self._spool.append(records)
            moved = spooled.kept + spooled.refused
            for _ in range(moved):
                self._buffer.popleft()
            self._moved += moved
            self.spooled += spooled.kept
            self._dropped[_REFUSED] += spooled.refused
            self._measure()
        return moved > 0

    async def _write_batch(self) -> None:
        """Write the oldest records to the store: from the spool, or else from memory."""
        async with self._turn:
            batch = await self._oldest()
            dropped = await self._insert(batch.records)
            await uninterrupted(self._settle(batch, dropped))

    async def _oldest(self) -> "_Batch":
        async with self._choice:
            size = self._settings.batch_size
            if self._spool and (spooled := await uninterrupted(self._spool.peek(size))):
                return _Batch(records=spooled, is_spooled=True, moved=self._moved)
            buffered = list(itertools.islice(self._buffer, size))
            return _Batch(records=buffered, is_spooled=False, moved=self._moved)

    async def _settle(self, batch: "_Batch", dropped: Counter[str]) -> None:
        """Remove records that the store has taken or will always refuse."""
        async with self._choice:
            if batch.is_spooled:
                assert self._spool is not None
                await self._spool.take()
            elif batch.moved != self._moved:
                return  # moved to the spool meanwhile: written again from there, and counted then
            else:
                for _ in batch.records:
                    self._buffer.popleft()
            self._dropped += dropped
            self.written += len(batch.records) - dropped.total()
            self._measure()
            if not self.pending:
                self._not_empty.clear()

    def _measure(self) -> None:
        if self._mirror:
            self._mirror.acknowledge(self.acknowledged)
        if self._spool:
            self._spool.measure(appended=self._appended, acknowledged=self.acknowledged)

    async def _insert(self, records: Sequence[DecisionRecord]) -> Counter[str]:
        """Store records except those that can never be stored; count those by reason.

        The batch is halved until they are found, so that one bad record does not block others.
        """
        try:
            deposed = await self._store.insert(records)
        except ValueError as error:
            if len(records) > 1:
                middle = len(records) // 2
                first = await self._insert(records[:middle])
                return first + await self._insert(records[middle:])
            log_refusal(records[0], error)
            return Counter({_REFUSED: 1})
        if deposed:
            _log_deposed(deposed)
        return Counter({_DEPOSED: len(deposed)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """The oldest records."""

    records: list[DecisionRecord]
    is_spooled: bool
    moved: int
    """Records that had been moved from memory to the spool when the batch was read."""


def _log_deposed(records: Sequence[DecisionRecord]) -> None:
    first = records[0]
    logger.error(
        "decisions of a deposed leader refused",
        extra={"service": first.service, "epoch": first.epoch, "rows": len(records)},
    )
