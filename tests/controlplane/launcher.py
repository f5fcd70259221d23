"""Become another program that dies with the process that started it.

Run as `python -I -S launcher.py PARENT PROGRAM ARGUMENTS...`, never imported. A separate program
rather than `preexec_fn`, which is unsafe (and warned about) once the parent has threads.
Linux keeps the death signal across exec, so the program itself needs no change.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for SIGKILL on the parent's death, then exec."""
    parent, program = int(sys.argv[1]), sys.argv[2]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"launcher: prctl failed: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the request above: then no signal would ever come.
    if os.getppid() != parent:
        sys.exit("launcher: the parent is gone")
    try:
        os.execvp(program, sys.argv[2:])
    except OSError as error:
        sys.exit(f"launcher: {program}: {error.strerror}")


if __name__ == "__main__":
    main()
