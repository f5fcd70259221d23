"""`cellgate log export FILE` and `cellgate log import FILE`."""

import sys
from argparse import Namespace
from pathlib import Path

from cli.log.mask.export import Masked, export_masked
from cli.log.mask.key import write_key
from cli.log.progress import Progress
from cli.log.texts import counted
from cli.log.wanted import POOL, check_exists, read_wanted
from extender.cluster.journal import SERVICE
from policy.errors import SettingsError
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
    if options.mask_key is not None and not options.mask:
        raise SettingsError("--mask-key needs --mask")
    check_exists(options.database_url)
    async with open_database(
        options.database_url, application_name="cellgate log", settings=POOL
    ) as database:
        await check_schema(database.pool)
        write = export_masked if options.mask else export_log
        done = await write(
            PostgresDecisions(database.pool),
            path,
            service=SERVICE,
            wanted=wanted,
            on_progress=progress,
        )
    progress.clear()
    _print_exported(done, wanted, path)
    if isinstance(done, Masked):
        _print_masked(done, options.mask_key)
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


def _print_masked(done: Masked, key: str | None) -> None:
    if key is not None:
        write_key(Path(key), done.names)
        print(f"{key}: the names behind {counted(done.names.count, 'pseudonym')}; keep it")
    for where, count in done.left_out.items():
        what = f"{where} left out of {counted(count, 'row')}"
        print(f"cellgate: {what}: this release does not know how to mask it", file=sys.stderr)


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
