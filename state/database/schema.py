"""The schema of a migrated database as text, read from its catalog.

`schema.sql` is that text for the migrations of this release, for readers and reviews; a test
compares it with the sum of the migrations. `python -m state.database.schema` writes it, from a
temporary database.
"""

import asyncio
import tempfile
from pathlib import Path

import asyncpg

from state.database.database import backend_errors, open_database
from state.database.migrator import migrate
from state.database.queries import sql

FILE = Path(__file__).with_name("schema.sql")
_HEADER = """\
-- Made by `python -m state.database.schema` from the migrations; do not edit. Tables with their
-- columns, keys, checks and indexes, then views and functions, by name. Partitions made at run time
-- are left out.
"""


async def describe_schema(pool: asyncpg.Pool) -> str:
    """Describe the schema of a database; equal texts mean equal schemas."""
    with backend_errors("reading the schema"):
        rows = await pool.fetch(sql("describe_schema"))
    return _HEADER + "".join(f"\n{_plain(row['definition'])}\n" for row in rows)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


async def build_schema() -> str:
    """Describe the schema that the migrations create in an empty database."""
    with tempfile.TemporaryDirectory(prefix="cellgate-schema-") as folder:
        async with open_database(f"embedded:{folder}/data", application_name="schema") as database:
            await migrate(database.pool)
            return await describe_schema(database.pool)


if __name__ == "__main__":
    FILE.write_text(asyncio.run(build_schema()), encoding="utf-8")
