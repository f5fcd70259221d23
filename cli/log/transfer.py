"""`cellgate log export FILE` and `cellgate log import FILE`."""

import sys
from argparse import Namespace
from pathlib import Path

from cli.log.progress import Progress
from cli.log.texts import counted
from cli.log.wanted import POOL, check_exists, read_wanted
from extender.cluster.journal import SERVICE
from service.exit_codes import Exit
from service.process import Stop
from state.database.database import open_database
from state.database.migrator import Stage, check_schema, migrate
from state.log.archive.reader import Archive
from state.log.archive.transfer import Exported, export_log, import_log
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted


async def export_to_file(options: Namespace, _: Stop) -> Exit:
    """Write a stretch of the log to a file, and print what the file has."""
    wanted, path, progress = read_wanted(options), Path(options.file), Progress()
    check_exists(options.database_url)
    async with open_database(
        options.database_url, application_name="cellgate log", settings=POOL
    ) as database:
        await check_schema(database.pool)
        done = await export_log(
            PostgresDecisions(database.pool),
            path,
            service=SERVICE,
            wanted=wanted,
            on_progress=progress,
        )
    progress.clear()
    _print_exported(done, wanted, path)
    return Exit.OK


def _print_exported(done: Exported, wanted: Wanted, path: Path) -> None:
    size = path.stat().st_size
    rows, epochs = counted(done.rows, "row"), counted(len(done.epochs), "epoch")
    print(f"{path}: {rows}, {epochs} of the extender, {size:,} bytes")
    for one in done.epochs:
        if one.began_at < wanted.since:
            print(f"epoch {one.epoch} began before --from: exported from its first row on")
        if one.first > 1:
            print(
                f"epoch {one.epoch}: the log has no rows before row {one.first}, so the epoch "
                "cannot be replayed"
            )
    if done.lacks_documents:
        print(f"{done.lacks_documents:,} rows refer to documents that the log does not have")
    if not done.rows:
        print("cellgate: no rows were found", file=sys.stderr)


async def import_from_file(options: Namespace, _: Stop) -> Exit:
    """Store the rows of a file in the log; rows that it has already stay as they are."""
    archive, progress = Archive(Path(options.file)), Progress()
    archive.header()  # a wrong file is told before a database is opened
    async with open_database(
        options.database_url, application_name="cellgate log", settings=POOL
    ) as database:
        await migrate(database.pool, until=Stage.PRE)
        log = PostgresDecisions(database.pool)
        done = await import_log(log, archive, on_progress=progress)
    progress.clear()
    print(f"{options.file}: {counted(done.rows, 'row')}, {done.new:,} of them new")
    if done.refused:
        rows = counted(done.refused, "row")
        why = "another leader had taken over when they were decided"
        print(f"cellgate: {rows} not stored: {why}", file=sys.stderr)
        return Exit.FAILED
    return Exit.OK
