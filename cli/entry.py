"""Where the process begins. It loads the rest itself, so that Ctrl-C is quiet from the start."""

import os
import sys

_INTERRUPTED = 130


def run() -> None:
    """Run the command of this process; the entry point of the `cellgate` program."""
    try:
        from cli.main import main

        code = int(main(sys.argv[1:], os.environ))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)
