"""The schema that people read is the sum of the migrations."""

from state.database.database import Database
from state.database.schema import FILE, describe_schema


async def test_the_schema_is_the_sum_of_the_migrations(database: Database) -> None:
    found = await describe_schema(database.pool)
    assert found == FILE.read_text(encoding="utf-8"), "run `python -m state.database.schema`"


async def test_the_description_tells_schemas_apart(database: Database) -> None:
    before = await describe_schema(database.pool)
    for change in (
        "ALTER TABLE charges ALTER vc SET DEFAULT 'x'",
        "CREATE INDEX ON charges (vc)",
        "ALTER TABLE holdings SET (fillfactor = 60)",
        "ALTER TABLE past_charges ADD CHECK (leaf_count < 1000)",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1",
    ):
        await database.pool.execute(change)
        after = await describe_schema(database.pool)
        assert after != before, change
        before = after
