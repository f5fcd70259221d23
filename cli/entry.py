"""The entry point of the process. It imports the rest late, so that Ctrl-C is quiet early."""

import os
import select
import sys

_INTERRUPTED = 130
_PIPE_CLOSED = 141


def run() -> None:
    """Run the command of this process."""
    try:
        from cli.main import main

        code = int(main(sys.argv[1:], os.environ))
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        if not _is_output_closed():
            raise
        # The reader, such as `head`, has read enough. What is left cannot be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _PIPE_CLOSED
    sys.exit(code)


def _is_output_closed() -> bool:
    """Tell whether standard output is a pipe that is not read any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
