"""Migrations of the schema, given by their names."""

from state.database.migrator import Migration, Stage


def a_migration(name: str, sql: str = "SELECT 1") -> Migration:
    """A migration whose number and stage are in its name, such as `0001_pre_create`."""
    number, stage, _ = name.split("_", 2)
    return Migration(name=name, number=int(number), stage=Stage(stage), sql=sql)
