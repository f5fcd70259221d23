"""Runs a command: from arguments to an exit code."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from cli.commands import build_parser
from policy.errors import BackendError, SettingsError
from service.logs import configure_logs
from service.process import Exit, run_until_signal


def main(argv: Sequence[str], environment: Mapping[str, str]) -> Exit:
    """Run one command and return its exit code; print an error of the call as one line."""
    try:
        options = build_parser(environment).parse_args(argv)
        configure_logs(level=options.log_level)
        return run_until_signal(partial(options.command, options))
    except SettingsError as exc:
        print(f"cellgate: {exc}", file=sys.stderr)
        return Exit.USAGE
    except BackendError as exc:  # such as a lock of another process on a table during migration
        print(f"cellgate: {exc}; try again", file=sys.stderr)
        return Exit.DIED
