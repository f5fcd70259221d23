"""Stretches of the log: whole epochs up to a row, read in pages, with the documents in them.

A replay needs an epoch from its first row on, whatever time was asked for: the engine depends on
every row before. So a stretch of time is, for a service with epochs, a list of `EpochStretch`.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from state.log.positions import END
from state.log.records import DecisionRecord, LoggedDocument

_PAGE: Final = 2000
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)

Term = tuple[str, int]
"""A service and the number of its epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which part of the log is asked for."""

    since: datetime = _BEGINNING
    until: datetime = END.at
    subject: str | None = None
    """Only epochs that have rows about it, and of rows without an epoch only those about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStretch:
    """The rows of one epoch, from the first that is stored to the last that is asked for."""

    epoch: int
    first: int
    """The number of the first row; rows before it are missing."""
    last: int
    began_at: datetime
    """When the term began: when its first row was decided."""


class EpochReader(Protocol):
    """The log as a replay reads it: `state.log.postgres`, or its twin in memory for tests."""

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return rows of one epoch from a sequence number on, in that order."""

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that a row refers to."""


async def read_epoch(
    reader: EpochReader, service: str, *, epoch: int, last: int | None = None
) -> AsyncIterator[DecisionRecord]:
    """Yield the rows of an epoch up to `last`, each with the document that it puts in force."""
    first = 1
    while page := await reader.of_epoch(service, epoch=epoch, first=first, limit=_PAGE):
        for record in page:
            if last is not None and (record.sequence or 0) > last:
                return
            yield await with_documents(reader, record)
        first = (page[-1].sequence or 0) + 1


async def with_documents(reader: EpochReader, record: DecisionRecord) -> DecisionRecord:
    """Return a row together with the documents that it refers to, as far as they are stored."""
    hashes = record.document_hashes
    if not hashes:
        return record
    found = [await reader.document(one) for one in hashes]
    return replace(record, documents=tuple(one for one in found if one is not None))
