"""`cellgate check FILE…`: validates policy documents offline, as the webhook does."""

import sys
from argparse import Namespace
from pathlib import Path

from cli.policy_files import build_from_files
from policy.errors import SettingsError, SpecError
from service.exit_codes import Exit
from service.process import Stop


async def check_policies(options: Namespace, _: Stop) -> Exit:
    """Print all problems of all files, or that there are none; warnings change no exit code."""
    try:
        checked = build_from_files([(name, read_text(name)) for name in options.files])
    except SpecError as exc:
        for problem in exc.problems:
            print(problem)
        return Exit.FAILED
    for warning in checked.warnings:
        print(f"warning: {warning}")
    print(f"ok: policy version {checked.policy.version}")
    return Exit.OK


def read_text(name: str) -> str:
    """Read a file, or standard input for `-`. Raises SettingsError if it cannot be read."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as exc:
        raise SettingsError(f"cannot read {name}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise SettingsError(f"cannot read {name}: it is not UTF-8 text") from exc
