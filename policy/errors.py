"""All errors that Cellgate raises, and how each is handled.

    CellgateError
    ├─ RequestError      the caller's pod or request is wrong   → refuse, with the reason
    ├─ SpecError         an admin's document is wrong           → keep the last good one, list all
    ├─ SettingsError     this process was started wrongly       → one line, exit code 2
    ├─ ConflictError     we lost a race (epoch, CAS)            → re-read and plan again, bounded
    ├─ BackendError      Postgres or Kubernetes failed          → not ready, back off
    └─ InvariantError    our bug                                → stop serving, exit non-zero

Adapters translate the errors of libraries, with `raise … from exc`. A returned `False`
means "no"; a raised error means "not known".
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where it is, and what to do about it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class CellgateError(Exception):
    """Base of all errors that Cellgate raises on purpose."""


class _ProblemsError(CellgateError):
    """Carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise ValueError("an error needs at least one problem")
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class RequestError(_ProblemsError):
    """The caller's pod or request is wrong."""

    @classmethod
    def at(cls, path: str, message: str) -> "RequestError":
        """Build the error for one problem."""
        return cls([Problem(path, message)])


class SpecError(_ProblemsError):
    """A document that an admin wrote is wrong."""


class SettingsError(CellgateError):
    """This process was started with settings it cannot work with; the message says what to do."""


class ConflictError(CellgateError):
    """Another writer was faster; read again and decide again."""


class BackendError(CellgateError):
    """Postgres or Kubernetes failed, or its success is not known."""


class InvariantError(CellgateError):
    """A bug: an invariant of our own code does not hold."""
