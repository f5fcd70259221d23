"""From a server's last words to one line that says what to do. Pure."""

import re
from collections.abc import Sequence

_ELSEWHERE = "or give --database-url postgresql://… of another server"

# The first pattern that matches any line decides; `{0}` is what its group found.
_ADVICE = (
    (
        r"error while loading shared libraries: ([^:]+):",
        "PostgreSQL's server needs the shared library {0}: install the system package that "
        f"contains it, {_ELSEWHERE}",
    ),
    (
        r"version `(GLIBC[^']+)' not found",
        "this system's C library is too old for the PostgreSQL wheel (it asks for {0}): use a "
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
        "the data was made by PostgreSQL {0}, which the installed version cannot read: install "
        "the wheel of that version, dump and reload, or choose another directory",
    ),
    (
        r"shared memory.*No space left on device",
        "PostgreSQL found no room for shared memory: enlarge /dev/shm (64 MB are enough), "
        f"{_ELSEWHERE}",
    ),
    (
        r"No space left on device|Disk quota exceeded|Check free disk space",
        "the disk is full: free some space, or choose another directory",
    ),
    (r"Read-only file system", "the file system is read-only: choose another directory"),
)
_SEVERE = re.compile(r"\b(?:PANIC|FATAL|error):\s+(.*)")


def explain(lines: Sequence[str]) -> str:
    """Say in one line why a server, or initdb, gave up, from what it wrote to stderr."""
    for pattern, advice in _ADVICE:
        for line in lines:
            if found := re.search(pattern, line):
                return advice.format(*found.groups())
    severe = [found[1] for line in lines if (found := _SEVERE.search(line))]
    last = severe[-1:] or [line for line in lines if line.strip()][-1:] or ["it said nothing"]
    return f"PostgreSQL gave up: {last[0].strip()}"
