"""The command line that every chaos has: run as long as asked for, print what was counted."""

import argparse
import contextlib
import logging
from collections.abc import Callable


def run(prog: str, about: str | None, rage: Callable[[float], dict[str, int]]) -> None:
    """Read the flags, rage, and print."""
    parser = argparse.ArgumentParser(prog=prog, description=about)
    parser.add_argument("--seconds", type=float, default=300)
    logging.disable(logging.WARNING)  # a killed server has much to say
    with contextlib.suppress(KeyboardInterrupt):
        for what, number in rage(parser.parse_args().seconds).items():
            print(f"{number:>8} {what}")
