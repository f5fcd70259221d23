"""Records in a spool and in a mirror. File IO of the spool runs in a thread.

When the disk fails, records stay in memory, up to the capacity of the log, until the disk works
again.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from state.log import codec
from state.log.records import DecisionRecord
from state.log.spool.mirror import Mirror
from state.log.spool.spool import Spool

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """How many of the oldest records were written; `refused` is 1 if the next one was refused."""

    kept: int
    refused: int


class RecordSpool:
    """A spool of records."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._peeked = 0
        self._is_failing = False
        self._is_full = False
        self._undecodable = 0
        self._taken_over = 0

    @property
    def count(self) -> int:
        """Records on disk."""
        return self._spool.count

    @property
    def lost(self) -> int:
        """Records of the previous process that were neither acknowledged nor mirrored."""
        return max(0, self._spool.loss_counter.lost - self._taken_over)

    @property
    def unreadable(self) -> int:
        """Records on disk that are damaged, or written by another version of Cellgate."""
        return self._undecodable + self._spool.unreadable

    def note_taken_over(self, count: int) -> None:
        """Note how many records were found in the mirror; log the others as lost."""
        self._taken_over = count
        if self.lost or self._spool.torn:
            extra = {"lost": self.lost, "torn": self._spool.torn}
            logger.error("decisions lost by a killed process", extra=extra)

    def measure(self, *, appended: int, acknowledged: int) -> None:
        """Store the counts of this process for the next one."""
        self._spool.loss_counter.set(appended=appended, acknowledged=acknowledged)

    async def append(self, records: Sequence[DecisionRecord]) -> Spooled:
        """Write records to disk, oldest first, as long as there is room."""
        # Full until something is taken: do not encode the same records again and again.
        if self._is_full or not records:
            return Spooled(kept=0, refused=0)
        try:
            spooled = await asyncio.to_thread(self._append, records)
        except OSError as error:
            self._note_failure(error)
            return Spooled(kept=0, refused=0)
        self._is_failing = False
        self._is_full = not spooled.kept and not spooled.refused
        return spooled

    async def peek(self, limit: int) -> list[DecisionRecord]:
        """Return the oldest records; unreadable ones are counted and left out."""
        while self._spool.count:
            payloads = await asyncio.to_thread(self._spool.peek, limit)
            self._peeked = len(payloads)
            records = _decode_all(payloads)
            self._undecodable += len(payloads) - len(records)
            if records:
                return records
            await self.take()
        return []

    async def take(self) -> None:
        """Remove the records that the last `peek` read."""
        if self._peeked:
            await asyncio.to_thread(self._spool.take, self._peeked)
            self._peeked = 0
            self._is_full = False

    async def sync(self) -> None:
        """Sync to disk, so that the records survive a crash of the machine."""
        if self._spool.is_synced:
            return
        try:
            await asyncio.to_thread(self._spool.sync)
        except OSError as error:
            self._note_failure(error)

    def _append(self, records: Sequence[DecisionRecord]) -> Spooled:
        payloads: list[bytes] = []
        refused = False
        for record in records:
            try:
                payloads.append(codec.encode(record))
            except ValueError as error:
                refused = True
                log_refusal(record, error)
                break
        kept = self._spool.append(payloads)
        return Spooled(kept=kept, refused=int(refused and kept == len(payloads)))

    def _note_failure(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            logger.error("spool failed, decisions stay in memory", extra={"error": str(error)})


class RecordMirror:
    """A mirror of records that are only in memory; `left` are those of the previous process."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._acknowledged = 0
        self.left = _decode_all(mirror.left)
        mirror.clear()

    def append(self, record: DecisionRecord) -> None:
        """Keep a record until it is acknowledged."""
        try:
            self._mirror.append(codec.encode(record))
        except ValueError:  # it can never be stored: logged when it is written
            self._mirror.append(b"")

    def acknowledge(self, count: int) -> None:
        """Remove acknowledged records; `count` is their total since the start."""
        self._mirror.remove(count - self._acknowledged)
        self._acknowledged = count


def _decode_all(payloads: Iterable[bytes]) -> list[DecisionRecord]:
    """Return the records of payloads; log and skip unreadable ones."""
    records: list[DecisionRecord] = []
    for payload in payloads:
        try:
            records.append(codec.decode(payload))
        except ValueError as error:
            logger.error("decision on disk unreadable", extra={"error": str(error)})
    return records


def log_refusal(record: DecisionRecord, error: ValueError) -> None:
    """Log a record that can never be stored."""
    logger.error(
        "decision cannot be stored",
        extra={"key": str(record.key), "subject": record.subject, "error": str(error)},
    )


async def uninterrupted(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Finish the work even if the caller is cancelled: a thread cannot be interrupted."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
