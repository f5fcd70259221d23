"""What one earlier commit has written: its database, spools and Kubernetes objects."""

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import asyncpg

from simulation.cluster import SimulatedCluster
from simulation.objects.fields import Object, key_of
from simulation.objects.resources import (
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from state.database.migrator import load_migrations, migrate

FOLDERS = sorted(path for path in Path(__file__).with_name("written").iterdir())
_MIGRATIONS = "schema_migrations"
_MIRROR_BYTES = 16 + 4 * 2**20
_SERVED = {
    one.kind: one for one in (NAMESPACES, NODES, CONFIG_MAPS, PRIORITY_CLASSES, LEASES, PODS)
}


@dataclass(frozen=True)
class Written:
    """A folder below `written/`."""

    folder: Path

    @cached_property
    def answers(self) -> dict[str, Any]:
        """What the earlier commit itself reads from what it has written."""
        answers: dict[str, Any] = json.loads((self.folder / "answers.json").read_text())
        return answers

    @property
    def epochs(self) -> list[int]:
        """The extender's terms, oldest first."""
        return sorted(map(int, self.answers["replays"]))

    @property
    def last_epoch(self) -> int:
        """The term whose end is in the spool."""
        return self.epochs[-1]

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of all tables that have any."""
        paths = sorted((self.folder / "database").glob("*.jsonl"))
        return {path.stem: _read_lines(path) for path in paths}

    @property
    def migrations(self) -> dict[str, str]:
        """The migrations that were applied, with their checksums."""
        return {row["name"]: row["checksum"] for row in self.tables[_MIGRATIONS]}

    @property
    def objects(self) -> list[Object]:
        """Namespaces, nodes, policies, priority classes, the Lease, pods, and a stamped Job."""
        return _read_lines(self.folder / "objects.jsonl")

    @property
    def pods(self) -> list[Object]:
        """The pods among the objects."""
        return [obj for obj in self.objects if obj["kind"] == PODS.kind]

    async def restore(self, pool: asyncpg.Pool) -> None:
        """Bring an empty database to the state in which the earlier commit left its own."""
        applied = self.migrations
        known = [migration for migration in load_migrations() if migration.name in applied]
        await migrate(pool, migrations=known)
        async with pool.acquire() as connection, connection.transaction():
            # As a restored dump: triggers have done their work before it was taken.
            await connection.execute("SET LOCAL session_replication_role = replica")
            for table, rows in self.tables.items():
                if table != _MIGRATIONS:
                    await _insert(connection, table, rows)
            await connection.execute(
                "SELECT setval(pg_get_serial_sequence('past_charges', 'id'), max(id)) "
                "FROM past_charges"
            )

    def copy_spool(self, service: str, target: Path) -> Path:
        """Copy the spool of a service that was killed while Postgres was away."""
        shutil.copytree(self.folder / "spool" / service, target)
        mirror = target / "mirror"
        if mirror.exists():  # stored without the unused rest of the ring
            with mirror.open("r+b") as file:
                file.truncate(_MIRROR_BYTES)
        return target

    def build_cluster(self) -> SimulatedCluster:
        """Build a cluster that holds the objects, not yet served."""
        cluster = SimulatedCluster(nodes=0)
        for resource in _SERVED.values():
            for obj in cluster.store.list(resource):
                cluster.store.remove(resource, key_of(obj))
        for obj in self.objects:
            if obj["kind"] in _SERVED:
                cluster.store.create(_SERVED[obj["kind"]], obj)
        return cluster


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def _insert(connection: asyncpg.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    columns = ", ".join(rows[0])
    await connection.execute(
        f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE "
        f"SELECT {columns} FROM json_populate_recordset(NULL::{table}, $1::json)",
        json.dumps(rows),
    )
