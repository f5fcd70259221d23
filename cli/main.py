"""`cellgate COMMAND`: from arguments to an exit code."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from cli.commands import build_parser
from policy.errors import BackendError, SettingsError
from service.logs import configure_logs
from service.process import Exit, run_until_signal


def main(argv: Sequence[str], environment: Mapping[str, str]) -> Exit:
    """Run one command and return its exit code; what is wrong with the call is one line."""
    try:
        options = build_parser(environment).parse_args(argv)
        configure_logs(level=options.log_level)
        return run_until_signal(partial(options.command, options))
    except SettingsError as exc:
        print(f"cellgate: {exc}", file=sys.stderr)
        return Exit.USAGE
    except BackendError as exc:  # such as a table that somebody else locks while it is migrated
        print(f"cellgate: {exc}; try again", file=sys.stderr)
        return Exit.DIED
