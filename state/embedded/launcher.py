"""Replaces itself by the given program, without root's rights and with a parent-death signal.

Run as a script (`launcher.py PARENT SIGNAL UID:GID|- PROGRAM ARGUMENT…`), because these steps must
happen in the child process, and Python code between fork and exec of a process with threads can
deadlock. It imports no module of Cellgate, since it runs without a module path.

The order matters: the kernel clears the parent-death signal when the user changes, and only a check
after the signal was set finds a parent that had already died.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
_FAILED = 125


def main(arguments: Sequence[str]) -> None:
    """Replace this process, or end it; never returns."""
    parent, death_signal, account, *command = arguments
    if account != "-":
        _become(*map(int, account.split(":")))
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        sys.exit(_FAILED)
    if os.getppid() != int(parent):
        sys.exit(_FAILED)
    try:
        os.execv(command[0], command)  # noqa: S606 - without a shell
    except OSError as error:
        _fail(f"cannot run {command[0]}: {error.strerror}")


def _become(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        _fail(f"cannot become user {uid}: {error.strerror}")


def _fail(message: str) -> None:
    sys.stderr.write(f"launcher: error: {message}\n")
    sys.exit(_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
