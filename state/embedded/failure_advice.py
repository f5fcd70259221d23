"""Turns the output of a failed server into one line of advice. Pure."""

import re
from collections.abc import Sequence

_ELSEWHERE = "or set --database-url postgresql://… to use another server"

# The first pattern that matches a line applies; `{0}` is the text of its group.
_ADVICE = (
    (
        r"error while loading shared libraries: ([^:]+):",
        "PostgreSQL needs the shared library {0}: install the system package that contains it, "
        f"{_ELSEWHERE}",
    ),
    (
        r"version `(GLIBC[^']+)' not found",
        "the C library of this system is too old for the PostgreSQL wheel, which needs {0}: use a "
        f"newer system, {_ELSEWHERE}",
    ),
    (
        r"cannot become user (\d+)",
        "PostgreSQL refuses to run as root, and this process may not become user {0}: run as an "
        f"ordinary user, {_ELSEWHERE}",
    ),
    (
        r"could not look up effective user ID (\d+)",
        "user {0} has no entry in /etc/passwd, which PostgreSQL's initdb needs: add one, "
        f"{_ELSEWHERE}",
    ),
    (
        r"initialized by PostgreSQL version (\S+),",
        "the data was created by PostgreSQL {0}, and the installed version cannot read it: install "
        "the wheel of that version, then dump and reload, or use another directory",
    ),
    (
        r"shared memory.*No space left on device",
        "PostgreSQL has not enough shared memory: enlarge /dev/shm (64 MB are enough), "
        f"{_ELSEWHERE}",
    ),
    (
        r"No space left on device|Disk quota exceeded|Check free disk space",
        "the disk is full: free some space, or use another directory",
    ),
    (r"Read-only file system", "the file system is read-only: use another directory"),
)
_SEVERE = re.compile(r"\b(?:PANIC|FATAL|error):\s+(.*)")


def explain(lines: Sequence[str]) -> str:
    """Return in one line why a server or initdb failed, from its output on stderr."""
    for pattern, advice in _ADVICE:
        for line in lines:
            if found := re.search(pattern, line):
                return advice.format(*found.groups())
    severe = [found[1] for line in lines if (found := _SEVERE.search(line))]
    last = severe[-1:] or [line for line in lines if line.strip()][-1:] or ["no output"]
    return f"PostgreSQL failed: {last[0].strip()}"
