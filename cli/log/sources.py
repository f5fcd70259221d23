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
from state.log.archive.transfer import check_archive
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord
from state.log.stretches import EpochStretch, Wanted, read_epoch

_ROWS_BETWEEN_SIGNALS: Final = 200


class RowSource(Protocol):
    """Where the rows of epochs come from; epochs are read once, in order."""

    async def epochs(self, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs that have wanted rows."""

    def rows(self, stretch: EpochStretch) -> AsyncIterator[DecisionRecord]:
        """Yield the rows of one of them, from its first to the last that is wanted."""


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


class FileRows:
    """The rows of an exported file, read from its beginning to its end."""

    def __init__(self, archive: Archive, progress: Progress) -> None:
        self._archive = archive
        self._progress = progress
        self._rows: Iterator[DecisionRecord] = iter(())
        self._next: DecisionRecord | None = None

    async def epochs(self, wanted: Wanted) -> list[EpochStretch]:
        """Check the whole file, and return the epochs that have wanted rows."""
        last: dict[int, int] = {}

        def note(record: DecisionRecord) -> None:
            is_about = wanted.subject in (None, record.subject)
            is_wanted = is_about and wanted.since <= record.at <= wanted.until
            if is_wanted and record.service == SERVICE and record.epoch is not None:
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
        count = 0
        while (record := self._next) is not None and (record.epoch or 0) <= stretch.epoch:
            if record.epoch == stretch.epoch and (record.sequence or 0) <= stretch.last:
                yield record
            self._next = next(self._rows, None)
            count += 1
            if count % _ROWS_BETWEEN_SIGNALS == 0:
                await asyncio.sleep(0)  # so that a signal is heard
