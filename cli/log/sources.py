"""The rows that a replay reads: of a database, or of a file without any database."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from cli.log.progress import Progress
from cli.log.wanted import POOL, check_exists
from extender.cluster.journal import SERVICE
from policy.errors import SettingsError
from state.database.database import open_database
from state.database.migrator import check_schema
from state.log.archive.reader import Archive
from state.log.archive.transfer import check_archive, rows_beside
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord
from state.log.stretches import EpochStretch, Wanted, read_epoch, with_documents

_ROWS_BETWEEN_SIGNALS: Final = 200


class RowSource(Protocol):
    """Where the rows of epochs come from; epochs are read once, in order."""

    async def epochs(self, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs that have wanted rows."""

    def rows(self, stretch: EpochStretch) -> AsyncIterator[DecisionRecord]:
        """Yield the rows of one of them, from its first to the last that is wanted."""

    def beside(self, wanted: Wanted) -> AsyncIterator[DecisionRecord]:
        """Yield the rows that are in no epoch, after those that are in one.

        A document comes with the first row that refers to it. Rows that are not wanted may be among
        them: they can be the first.
        """


@asynccontextmanager
async def open_source(options: Namespace, progress: Progress) -> AsyncIterator[RowSource]:
    """Open the file, or else the database, that the flags name."""
    if options.file is not None:
        yield FileRows(Archive(Path(options.file)), progress)
        return
    if options.database_url is None:
        raise SettingsError("--database-url or --file is required")
    check_exists(options.database_url)
    async with open_database(
        options.database_url, application_name="cellgate replay", settings=POOL
    ) as database:
        await check_schema(database.pool)
        yield DatabaseRows(PostgresDecisions(database.pool))


class DatabaseRows:
    """The rows of the log in Postgres."""

    def __init__(self, log: PostgresDecisions) -> None:
        self._log = log

    async def epochs(self, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs that have wanted rows."""
        return await self._log.epochs(SERVICE, wanted)

    def rows(self, stretch: EpochStretch) -> AsyncIterator[DecisionRecord]:
        """Yield the rows of one of them."""
        return read_epoch(self._log, SERVICE, epoch=stretch.epoch, last=stretch.last)

    async def beside(self, wanted: Wanted) -> AsyncIterator[DecisionRecord]:
        """Yield the wanted rows that are in no epoch."""
        known: set[str] = set()
        async for record in rows_beside(self._log, SERVICE, wanted):
            is_known = known.issuperset(record.document_hashes)
            yield record if is_known else await with_documents(self._log, record)
            known.update(record.document_hashes)


class FileRows:
    """The rows of an exported file, read from its beginning to its end."""

    def __init__(self, archive: Archive, progress: Progress) -> None:
        self._archive = archive
        self._progress = progress
        self._rows: Iterator[DecisionRecord] = iter(())
        self._next: DecisionRecord | None = None
        self._count = 0

    async def epochs(self, wanted: Wanted) -> list[EpochStretch]:
        """Check the whole file, and return the epochs that have wanted rows."""
        last: dict[int, int] = {}

        def note(record: DecisionRecord) -> None:
            if record.epoch is not None and record.service == SERVICE and is_wanted(record, wanted):
                last[record.epoch] = record.sequence or 0

        contents = await check_archive(self._archive, on_progress=self._progress, on_row=note)
        if contents.header.service != SERVICE:
            raise SettingsError(f"{self._archive.path} has no epochs of the {SERVICE}")
        self._rows = self._archive.rows()
        self._next = next(self._rows, None)
        return [
            EpochStretch(
                epoch=one.epoch, first=one.first, last=last[one.epoch], began_at=one.began_at
            )
            for one in contents.header.epochs
            if one.epoch in last
        ]

    async def rows(self, stretch: EpochStretch) -> AsyncIterator[DecisionRecord]:
        """Yield the rows of one of them."""
        while (record := self._next) is not None and not _is_beside(record):
            assert record.epoch is not None
            if record.epoch > stretch.epoch:
                return
            if record.epoch == stretch.epoch and (record.sequence or 0) <= stretch.last:
                yield record
            await self._go_on()

    async def beside(self, wanted: Wanted) -> AsyncIterator[DecisionRecord]:
        """Yield the rows that are in no epoch, also those that are not wanted."""
        while (record := self._next) is not None:
            if _is_beside(record):
                yield record
            await self._go_on()

    async def _go_on(self) -> None:
        self._next = next(self._rows, None)
        self._count += 1
        if self._count % _ROWS_BETWEEN_SIGNALS == 0:
            await asyncio.sleep(0)  # so that a signal is heard


def _is_beside(record: DecisionRecord) -> bool:
    return record.service != SERVICE or record.epoch is None or record.sequence is None


def is_wanted(record: DecisionRecord, wanted: Wanted) -> bool:
    """Tell whether a row is asked for."""
    is_about = wanted.subject in (None, record.subject)
    return is_about and wanted.since <= record.at <= wanted.until
