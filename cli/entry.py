"""The entry point of the process. It imports the rest late, so that Ctrl-C is quiet early."""

import os
import sys

_INTERRUPTED = 130


def run() -> None:
    """Run the command of this process."""
    try:
        from cli.main import main

        code = int(main(sys.argv[1:], os.environ))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)
