"""What is understood of --database-url, and what is never shown of it."""

from pathlib import Path

import pytest

from policy.errors import BackendError, SettingsError
from state.database.database import (
    Database,
    backend_errors,
    describe_server,
    open_database,
    parse_embedded,
)


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("embedded:/var/lib/cellgate", Path("/var/lib/cellgate")),
        ("embedded:data", Path("data")),
        ("postgresql://h/db", None),
    ],
)
def test_an_embedded_database_names_a_directory(url: str, directory: Path | None) -> None:
    assert parse_embedded(url) == directory


def test_an_embedded_database_without_a_directory_is_refused() -> None:
    with pytest.raises(SettingsError, match="has no directory"):
        parse_embedded("embedded:")


@pytest.mark.parametrize(
    ("url", "description"),
    [
        ("postgresql://me:s3cret@db.example:5433/cellgate", "db.example:5433, database cellgate"),
        ("postgres://me@db.example", "db.example"),
        ("postgresql://me:p%40ss@[::1]:5432/x", "[::1]:5432, database x"),
        ("postgresql://me:s3cret@a:1,b:2/x?target_session_attrs=any", "a:1,b:2, database x"),
        ("postgresql://me@/x?host=/run/pg&password=s3cret", "/run/pg, database x"),
        ("postgresql://me:s3cret@%2Frun%2Fpg/x", "/run/pg, database x"),
        ("postgresql:///x", "its default host, database x"),
    ],
)
def test_a_server_is_described_without_its_password(url: str, description: str) -> None:
    assert describe_server(url) == description


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:s3cret@h/db",
        "s3cret",
        "",
        "postgresql://me:s3cret/more@h/db",
        "postgresql://me:s3cret#more@h/db",
        "postgresql://me:s3cret?more@h/db",
        "postgresql://me:s3cret",
        "postgresql://me:pw@h:s3cret/db",
        "postgresql://me:s3cret@[h/db",
    ],
)
async def test_a_url_that_is_not_understood_is_not_repeated(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        async with open_database(url, application_name="tests"):
            pass
    assert str(caught.value).startswith("--database-url is not valid; use postgresql://")
    assert "s3cret" not in str(caught.value)


def test_an_open_database_does_not_show_its_url() -> None:
    assert "s3cret" not in repr(Database(pool=None, url="postgresql://me:s3cret@h/db"))


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (ConnectionResetError("gone"), "ConnectionResetError: gone"),
        (ConnectionResetError(), "ConnectionResetError"),
        (TimeoutError(), "it did not answer in time"),
    ],
)
def test_failures_of_postgres_are_backend_errors(failure: Exception, why: str) -> None:
    def fail() -> None:
        with backend_errors("counting"):
            raise failure

    with pytest.raises(BackendError, match=rf"Postgres failed while counting: {why}$") as caught:
        fail()
    assert caught.value.__cause__ is failure
