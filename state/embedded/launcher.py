"""Becomes the given program: without root's rights, and ended by the kernel when its parent ends.

Run as a script (`launcher.py PARENT SIGNAL UID:GID|- PROGRAM ARGUMENT…`) because these steps must
happen in the child, in this order, and running Python between fork and exec of a process with
threads can deadlock. Imports nothing of ours: it runs without any path set up.

The order matters: the kernel forgets the parent-death signal when the user changes, and a parent
that died before it was set is noticed only by asking afterwards.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
_FAILED = 125


def main(arguments: Sequence[str]) -> None:
    """Never returns: replaces this process, or ends it."""
    parent, death_signal, account, *command = arguments
    if account != "-":
        _become(*map(int, account.split(":")))
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        sys.exit(_FAILED)
    if os.getppid() != int(parent):
        sys.exit(_FAILED)
    try:
        os.execv(command[0], command)  # noqa: S606 - a shell is what is not wanted here
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
