"""Runs a command: from arguments to an exit code.

What a command needs is loaded when it was chosen.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial

from cli.commands import build_parser
from cli.late import Command
from policy.errors import BackendError, SettingsError
from service.exit_codes import Exit


def main(argv: Sequence[str], environment: Mapping[str, str]) -> Exit:
    """Run one command and return its exit code; print an error of the call as one line."""
    try:
        options = build_parser(environment).parse_args(argv)
        return _run(options.command, options)
    except SettingsError as exc:
        print(f"cellgate: {exc}", file=sys.stderr)
        return Exit.USAGE
    except BackendError as exc:  # such as a lock of another process on a table during migration
        print(f"cellgate: {exc}; try again", file=sys.stderr)
        return Exit.DIED


def _run(command: Command, options: Namespace) -> Exit:
    from service.logs import configure_logs
    from service.process import run_until_signal

    configure_logs(level=options.log_level)
    return run_until_signal(partial(command, options))
