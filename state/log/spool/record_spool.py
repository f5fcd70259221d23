"""Records to and from a spool, without holding up the event loop: all file IO is in a thread.

And to and from a mirror, which needs neither thread nor disk.

A disk that fails is no reason to stop: the records stay in memory and the log goes on without a
spool, as far as memory reaches, until the disk takes them again.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from state.log.records import DecisionRecord
from state.log.spool import codec
from state.log.spool.mirror import Mirror
from state.log.spool.spool import Spool

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """How many of the oldest records are on disk; then, how many (none or one) never will be."""

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
        """Records that the process before this one had not got acknowledged, nor mirrored."""
        return max(0, self._spool.meter.lost - self._taken_over)

    @property
    def unreadable(self) -> int:
        """Records on disk that are damaged, or in the layout of another version of Cellgate."""
        return self._undecodable + self._spool.unreadable

    def note_taken_over(self, count: int) -> None:
        """So many of them were found in a mirror: tell of the others."""
        self._taken_over = count
        if self.lost or self._spool.torn:
            extra = {"lost": self.lost, "torn": self._spool.torn}
            logger.error("decisions lost by a killed process", extra=extra)

    def measure(self, *, appended: int, acknowledged: int) -> None:
        """Take note of how far this process has got, for the one after it."""
        self._spool.meter.set(appended=appended, acknowledged=acknowledged)

    async def append(self, records: Sequence[DecisionRecord]) -> Spooled:
        """Put records on disk, oldest first, as far as there is room."""
        # Full until something is taken: the same records are not encoded again and again.
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
        """Return the oldest records; what cannot be read is counted and left out."""
        while self._spool.count:
            payloads = await asyncio.to_thread(self._spool.peek, limit)
            self._peeked = len(payloads)
            if records := self._decode(payloads):
                return records
            await self.take()
        return []

    async def take(self) -> None:
        """Forget what the last `peek` looked at."""
        if self._peeked:
            await asyncio.to_thread(self._spool.take, self._peeked)
            self._peeked = 0
            self._is_full = False

    async def sync(self) -> None:
        """Make everything in it survive the death of the machine."""
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
                _log_refusal(record, error)
                break
        kept = self._spool.append(payloads)
        return Spooled(kept=kept, refused=int(refused and kept == len(payloads)))

    def _decode(self, payloads: Sequence[bytes]) -> list[DecisionRecord]:
        records: list[DecisionRecord] = []
        for payload in payloads:
            try:
                records.append(codec.decode(payload))
            except ValueError as error:
                self._undecodable += 1
                logger.error("spooled decision is unreadable", extra={"error": str(error)})
        return records

    def _note_failure(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            logger.error("spool fails, decisions stay in memory", extra={"error": str(error)})


class RecordMirror:
    """A mirror of the records that are in memory only; `left` are those of the previous process."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._acknowledged = 0
        self.left = [record for payload in mirror.left if (record := _decode(payload)) is not None]
        mirror.clear()

    def append(self, record: DecisionRecord) -> None:
        """Keep a record until it is acknowledged."""
        try:
            self._mirror.append(codec.encode(record))
        except ValueError:  # it can never be stored: told when that is tried
            self._mirror.append(b"")

    def acknowledge(self, count: int) -> None:
        """So many of those appended so far are settled or in the spool."""
        self._mirror.release(count - self._acknowledged)
        self._acknowledged = count


def _decode(payload: bytes) -> DecisionRecord | None:
    try:
        return codec.decode(payload)
    except ValueError as error:
        logger.error("mirrored decision is unreadable", extra={"error": str(error)})
        return None


def _log_refusal(record: DecisionRecord, error: ValueError) -> None:
    logger.error(
        "decision refused by the spool",
        extra={"key": str(record.key), "subject": record.subject, "error": str(error)},
    )


async def uninterrupted(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Do work to its end even if we are cancelled meanwhile: a thread cannot be called back."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
