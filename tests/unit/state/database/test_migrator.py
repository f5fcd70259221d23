"""Which migrations are applied, in which order, and which are refused."""

from pathlib import Path

import pytest

from policy.errors import InvariantError, SettingsError
from state.database.migrator import Migration, Stage, choose_pending, load_migrations
from tests.support.state.migrations import a_migration


def _applied(*migrations: Migration) -> dict[str, str]:
    return {migration.name: migration.checksum for migration in migrations}


FIRST = a_migration("0001_pre_tables")
SECOND_PRE = a_migration("0002_pre_column")
SECOND_POST = a_migration("0002_post_column")
THIRD_PRE = a_migration("0003_pre_index")


def test_files_are_loaded_by_number_and_pre_before_post(tmp_path: Path) -> None:
    for name in ("0010_pre_b", "0002_post_a", "0002_pre_a"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1")
    names = [migration.name for migration in load_migrations(tmp_path)]
    assert names == ["0002_pre_a", "0002_post_a", "0010_pre_b"]


@pytest.mark.parametrize("name", ["1_pre_a", "0001_mid_a", "0001_pre_A", "0001_pre_"])
def test_a_file_with_another_name_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.sql").write_text("SELECT 1")
    with pytest.raises(InvariantError, match="must be named"):
        load_migrations(tmp_path)


def test_two_files_of_one_number_and_stage_are_an_error(tmp_path: Path) -> None:
    for name in ("0001_pre_a", "0001_pre_b"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1")
    with pytest.raises(InvariantError, match="same number and stage"):
        load_migrations(tmp_path)


def test_our_own_files_are_in_order() -> None:
    names = [migration.name for migration in load_migrations()]
    assert names[0] == "0001_pre_decisions"


def test_everything_is_pending_in_a_new_database() -> None:
    migrations = [FIRST, SECOND_PRE, SECOND_POST]
    assert choose_pending(migrations, applied={}, until=Stage.POST) == migrations


def test_nothing_is_pending_twice() -> None:
    migrations = [FIRST, SECOND_PRE]
    assert choose_pending(migrations, applied=_applied(*migrations), until=Stage.POST) == []


def test_post_migrations_wait_while_older_code_runs() -> None:
    migrations = [FIRST, SECOND_PRE, SECOND_POST]
    assert choose_pending(migrations, applied=_applied(FIRST), until=Stage.PRE) == [SECOND_PRE]


def test_a_post_migration_that_was_forgotten_blocks_the_next_release() -> None:
    migrations = [FIRST, SECOND_PRE, SECOND_POST, THIRD_PRE]
    with pytest.raises(
        SettingsError, match="0002_post_column of an earlier release was not applied"
    ):
        choose_pending(migrations, applied=_applied(FIRST, SECOND_PRE), until=Stage.PRE)


def test_an_edited_file_is_refused() -> None:
    edited = a_migration(FIRST.name, "SELECT 2")
    with pytest.raises(SettingsError, match="0001_pre_tables differs"):
        choose_pending([edited], applied=_applied(FIRST), until=Stage.POST)


def test_what_newer_code_applied_is_left_alone() -> None:
    applied = _applied(FIRST, SECOND_PRE)
    assert choose_pending([FIRST], applied=applied, until=Stage.POST) == []
