"""Applies migrations: each file once, in order, completely or not at all.

Each step is one transaction: it takes an advisory lock, reads which files were applied, applies the
next file and records it. So replicas that start together take turns, and a crash between two files
is harmless. The lock belongs to the transaction, not the session, so PgBouncer works too.
"""

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import asyncpg

from policy.errors import InvariantError, SettingsError
from state.database.database import backend_errors
from state.database.queries import sql

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parents[1] / "migrations"
_FILE_NAME = re.compile(r"(\d{4})_(pre|post)_[a-z0-9_]+\Z")
_LOCK = int.from_bytes(b"cellgate")
# Wait long for other replicas, but briefly for tables, since other statements queue behind it.
_WAIT_FOR_TURN = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0"
_WAIT_FOR_TABLE = "SET LOCAL lock_timeout = '5s'"
_LONGEST_SECONDS = 3600.0


class Stage(StrEnum):
    """When a migration is applied: before the release that needs it, or after older ones ended."""

    PRE = "pre"
    POST = "post"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One migration file."""

    name: str
    number: int
    stage: Stage
    sql: str

    @property
    def checksum(self) -> str:
        """Identifies the content that was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(folder: Path = _FOLDER) -> list[Migration]:
    """Read all migrations, in the order in which they are applied."""
    migrations = [_load(path) for path in folder.glob("*.sql")]
    migrations.sort(key=lambda migration: (migration.number, migration.stage is Stage.POST))
    steps = [(migration.number, migration.stage) for migration in migrations]
    if len(set(steps)) != len(steps):
        raise InvariantError(f"two migrations in {folder} have the same number and stage")
    return migrations


def _load(path: Path) -> Migration:
    found = _FILE_NAME.match(path.stem)
    if found is None:
        raise InvariantError(f"{path.name} must be named NNNN_pre_name.sql or NNNN_post_name.sql")
    return Migration(
        name=path.stem,
        number=int(found[1]),
        stage=Stage(found[2]),
        sql=path.read_text(encoding="utf-8"),
    )


def choose_pending(
    migrations: Sequence[Migration], *, applied: Mapping[str, str], until: Stage
) -> list[Migration]:
    """Return the pending migrations in order; `until=Stage.PRE` leaves out `post` files.

    Applied migrations that this release does not have are accepted: a newer release runs too.
    """
    for migration in migrations:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise SettingsError(
                f"migration {migration.name} differs from the one that was applied to this "
                "database: use the release that applied it, or a later release"
            )
    pending = [migration for migration in migrations if migration.name not in applied]
    if until is Stage.POST:
        return pending
    return _only_pre(pending)


def _only_pre(pending: Sequence[Migration]) -> list[Migration]:
    stages = [migration.stage for migration in pending]
    if stages != sorted(stages, key=lambda stage: stage is Stage.POST):
        waiting = pending[stages.index(Stage.POST)].name
        raise SettingsError(
            f"migration {waiting} of an earlier release was not applied: stop all replicas that "
            "are older than that release, then run `cellgate migrate`"
        )
    return [migration for migration in pending if migration.stage is Stage.PRE]


async def migrate(
    pool: asyncpg.Pool,
    *,
    until: Stage = Stage.POST,
    migrations: Sequence[Migration] | None = None,
) -> list[str]:
    """Apply pending migrations and return their names; several replicas may call it at once.

    A replica that may start beside older ones passes `until=Stage.PRE`.
    """
    if migrations is None:
        migrations = load_migrations()
    names: list[str] = []
    with backend_errors("migrating the schema"):
        try:
            while (name := await _apply_next(pool, migrations, until=until)) is not None:
                names.append(name)
        except asyncpg.InsufficientPrivilegeError as error:
            raise SettingsError(
                f"the user in --database-url has no right to change the schema ({error}): run "
                "`cellgate migrate` as the owner of the database"
            ) from error
    return names


async def check_schema(pool: asyncpg.Pool) -> None:
    """Raise SettingsError if the database lacks tables of this release: for those who only read."""
    with backend_errors("reading the schema"):
        async with pool.acquire() as connection:
            applied = await _read_applied(connection)
    if choose_pending(load_migrations(), applied=applied or {}, until=Stage.PRE):
        raise SettingsError(
            "the database lacks tables of this release: check --database-url, or run "
            "`cellgate migrate` first"
        )


async def _apply_next(
    pool: asyncpg.Pool, migrations: Sequence[Migration], *, until: Stage
) -> str | None:
    """Apply the next pending migration, if there is one, in one transaction."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(_WAIT_FOR_TURN)
        await connection.execute(sql("lock_migrations"), _LOCK, timeout=_LONGEST_SECONDS)
        applied = await _read_applied(connection)
        pending = choose_pending(migrations, applied=applied or {}, until=until)
        if not pending:
            return None
        if applied is None:
            await connection.execute(sql("create_migrations_table"))
        await _apply(connection, pending[0])
        return pending[0].name


async def _read_applied(connection: asyncpg.Connection) -> dict[str, str] | None:
    """Return the checksums of applied migrations by name; None if their table does not exist."""
    if not await connection.fetchval(sql("has_migrations_table")):
        return None
    rows = await connection.fetch(sql("applied_migrations"))
    return {row["name"]: row["checksum"] for row in rows}


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    await connection.execute(_WAIT_FOR_TABLE)
    connection.add_log_listener(_repeat_notice)
    try:
        await connection.execute(migration.sql, timeout=_LONGEST_SECONDS)
    finally:
        connection.remove_log_listener(_repeat_notice)
    await connection.execute(sql("record_migration"), migration.name, migration.checksum)


def _repeat_notice(_connection: object, notice: asyncpg.PostgresLogMessage) -> None:
    """Log the notices of a migration, such as missing rights."""
    logger.warning("migration notice", extra={"notice": str(notice)})
