"""The migrations of all branches together can be loaded."""

from state.database.migrator import load_migrations


def test_every_migration_has_a_number_of_its_own() -> None:
    """Two branches may take the same number; then no process of the merged release starts."""
    numbers = [(one.number, one.stage) for one in load_migrations()]
    assert numbers == sorted(set(numbers))
