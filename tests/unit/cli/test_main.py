"""What the shell gets when a command does not work out."""

import subprocess
import sys

_FAILS = """
import sys
from cli import migrate
from cli.main import main
from policy.errors import BackendError

async def fail(options, stop):
    raise BackendError("Postgres failed while migrating the schema: LockNotAvailableError: t")

migrate.migrate_database = fail
sys.exit(main(["migrate", "--database-url", "postgresql://h/d"], {}))
"""


def test_a_database_that_fails_at_start_up_is_one_line_and_worth_another_try() -> None:
    # In a process of its own: it takes over logging and signals.
    done = subprocess.run([sys.executable, "-c", _FAILS], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "cellgate: Postgres failed while migrating the schema: LockNotAvailableError: t; "
        "try again\n"
    )
