"""What earlier commits have written, and a database restored from it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from state.database.database import Database, open_database
from state.database.migrator import migrate
from tests.compatibility.written import FOLDERS, Written
from tests.support.state.postgres import empty_database_url, postgres

__all__ = ["empty_database_url", "postgres"]


@pytest.fixture(params=FOLDERS, ids=lambda folder: f"written by {folder.name}")
def written(request: pytest.FixtureRequest) -> Written:
    """What one earlier commit has written."""
    folder: Path = request.param
    return Written(folder)


@pytest.fixture
async def older_database(empty_database_url: str, written: Written) -> AsyncIterator[Database]:
    """A database that the earlier commit has written, migrated by this one."""
    async with open_database(empty_database_url, application_name="tests") as database:
        await written.restore(database.pool)
        await migrate(database.pool)
        yield database
