"""The exit codes of commands. Imports nothing, so that a command that only prints ends at once."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit code of a command."""

    OK = 0
    FAILED = 1
    """What the command checked has problems."""
    DIED = 1
    USAGE = 2
    INTERRUPTED = 130
