"""`cellgate migrate`: applies database migrations."""

from argparse import Namespace

from service.exit_codes import Exit
from service.process import Stop
from state.database.database import open_database
from state.database.migrator import migrate


async def migrate_database(options: Namespace, _: Stop) -> Exit:
    """Apply pending migrations, and print their names."""
    async with open_database(options.database_url, application_name="cellgate") as database:
        applied = await migrate(database.pool)
    for name in applied:
        print(f"applied {name}")
    print("the schema is up to date")
    return Exit.OK
