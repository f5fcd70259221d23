"""From the log to a file, and from a file into the log of a database.

An import may not disturb the log that is there. So a file goes into an empty log, or into the log
that it came from: then every term of the file is one of its terms, begun at the same moment. A
masked file goes into an empty log only. Rows that are stored already stay as they are, and no fact
about a run is imported.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from policy.errors import SettingsError
from state.log.archive.lines import Header
from state.log.archive.reader import Archive, Contents
from state.log.archive.writer import open_writer
from state.log.positions import Position
from state.log.records import DecisionRecord
from state.log.stretches import (
    EpochReader,
    EpochStretch,
    Term,
    Wanted,
    read_epoch,
    with_documents,
)

_PAGE: Final = 1000

Progress = Callable[[str, float | None], None]
"""Is told what is done, and which part of it, from 0 to 1, if that is known."""


class BesideReader(Protocol):
    """The log, as far as rows without an epoch are read."""

    async def beside_epochs(
        self, service: str, wanted: Wanted, *, after: Position, limit: int
    ) -> list[DecisionRecord]:
        """Return wanted rows that are in no epoch of a service, oldest first."""


class ExportableLog(BesideReader, EpochReader, Protocol):
    """The log that is exported."""

    async def epochs(self, service: str, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs of a service that have wanted rows, in order."""


class ImportingLog(Protocol):
    """The log that a file is imported into."""

    async def insert(self, records: Sequence[DecisionRecord]) -> Sequence[DecisionRecord]:
        """Store rows that are not stored yet; return those that it refuses."""

    async def count_stored(self, records: Sequence[DecisionRecord]) -> int:
        """Count those of some rows that are stored."""

    async def terms(self) -> dict[Term, datetime]:
        """Return which terms of services the log knows, and when each began."""

    async def is_empty(self) -> bool:
        """Tell whether the log has neither rows nor terms."""

    async def adopt(self, terms: Mapping[Term, datetime], days: Iterable[date]) -> None:
        """Prepare for rows of another log: its terms and its days."""


@dataclass(slots=True, kw_only=True)
class Exported:
    """What was written to a file."""

    epochs: Sequence[EpochStretch] = ()
    rows: int = 0
    lacks_documents: int = 0
    """Rows whose documents the log does not have any more."""


@dataclass(slots=True, kw_only=True)
class Imported:
    """What was read from a file."""

    rows: int = 0
    new: int = 0
    """Rows that were not stored before."""
    refused: int = 0
    """Rows of a leader that another one had replaced: the log does not take them."""


async def export_log(
    log: ExportableLog, path: Path, *, service: str, wanted: Wanted, on_progress: Progress
) -> Exported:
    """Write wanted rows to a file: epochs from their first row on, and rows of other services."""
    done = Exported(epochs=await log.epochs(service, wanted))
    with open_writer(path) as writer:
        writer.begin(build_header(done.epochs, service=service, wanted=wanted))
        async for record in wanted_rows(
            log, done, service=service, wanted=wanted, on_progress=on_progress
        ):
            writer.append(record)
        done.rows = writer.rows
    return done


def build_header(
    epochs: Sequence[EpochStretch], *, service: str, wanted: Wanted, is_masked: bool = False
) -> Header:
    """Build the header of a file with wanted rows."""
    return Header(
        service=service,
        epochs=tuple(epochs),
        since=wanted.since.isoformat(),
        until=wanted.until.isoformat(),
        subject=wanted.subject,
        is_masked=is_masked,
    )


async def wanted_rows(
    log: ExportableLog,
    done: Exported,
    *,
    service: str,
    wanted: Wanted,
    on_progress: Progress,
    verb: str = "exporting",
) -> AsyncIterator[DecisionRecord]:
    """Yield the rows of a file: epochs from their first row on, then the rows of other services.

    Of the latter, the first that refers to a document has it. Documents that the log does not have
    are counted.
    """
    known: set[str] = set()
    done.lacks_documents = 0
    for one in done.epochs:
        async for record in read_epoch(log, service, epoch=one.epoch, last=one.last):
            yield record
            known.update(document.hash for document in record.documents)
            done.lacks_documents += _lacks_documents(record)
            on_progress(f"{verb} epoch {one.epoch}", (record.sequence or 0) / max(one.last, 1))
    async for record in rows_beside(log, service, wanted):
        is_told = known.issuperset(record.document_hashes)
        whole = record if is_told else await with_documents(log, record)
        yield whole
        done.lacks_documents += not is_told and _lacks_documents(whole)
        known.update(document.hash for document in whole.documents)
        on_progress(f"{verb} rows of {record.at:%Y-%m-%d %H:%M}", None)


async def rows_beside(
    log: BesideReader, service: str, wanted: Wanted
) -> AsyncIterator[DecisionRecord]:
    """Yield wanted rows that are in no epoch of a service, oldest first."""
    after = Position(wanted.since, UUID(int=0))
    while page := await log.beside_epochs(service, wanted, after=after, limit=_PAGE):
        for record in page:
            yield record
        after = Position.of(page[-1])


def _lacks_documents(record: DecisionRecord) -> bool:
    return len(record.documents) < len(record.document_hashes)


async def check_archive(
    archive: Archive,
    *,
    on_progress: Progress,
    on_row: Callable[[DecisionRecord], None] = lambda _: None,
) -> Contents:
    """Read a file once to check it. Raises SettingsError if it is damaged or something else."""
    for found in archive.check(on_row):
        on_progress("checking the file", archive.part)
        if found is not None:
            return found
        await asyncio.sleep(0)  # so that a signal is heard
    raise AssertionError("the check ends with what it found")


async def import_log(log: ImportingLog, archive: Archive, *, on_progress: Progress) -> Imported:
    """Store the rows of a file. Raises SettingsError, before anything is stored, if it may not."""
    contents = await check_archive(archive, on_progress=on_progress)
    await _prepare(log, archive, contents)
    done = Imported()
    for page in _pages(archive.rows()):
        known = await log.count_stored(page)
        if known < len(page):
            await log.insert(page)
            stored = await log.count_stored(page)
            done.new += stored - known
            done.refused += len(page) - stored
        done.rows += len(page)
        on_progress("importing", archive.part)
    return done


def _pages(rows: Iterator[DecisionRecord]) -> Iterator[list[DecisionRecord]]:
    page: list[DecisionRecord] = []
    for record in rows:
        page.append(replace(record, facts=None))
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


async def _prepare(log: ImportingLog, archive: Archive, contents: Contents) -> None:
    header = contents.header
    told = {(header.service, one.epoch): one.began_at for one in header.epochs}
    if await log.is_empty():
        await log.adopt(told, contents.days)
        return
    if header.is_masked:
        raise SettingsError(
            f"{archive.path} is masked: its rows would mix with those of this database under other "
            "names. Import it into an empty database, or replay it from the file"
        )
    known = await log.terms()
    for term in sorted(contents.terms | told.keys()):
        if term not in known or known[term] != told.get(term, known[term]):
            raise SettingsError(
                f"{archive.path} is of another log than this database: it has epoch {term[1]} of "
                f"the {term[0]}, and its rows would mix with those of this database's own leaders. "
                "Import it into an empty database, or replay it from the file"
            )
    await log.adopt({}, contents.days)
