"""One thing broken on purpose, and whether a test notices."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

Test = Callable[[], object]


@dataclass(frozen=True)
class Mutation:
    """One thing broken: an attribute of a class or module is replaced."""

    rule: str
    """What does not hold any more."""
    target: type | ModuleType
    name: str
    broken: Any
    noticed_by: tuple[Test, ...]

    def apply(self) -> Any:
        """A context in which it is broken."""
        return patch.object(self.target, self.name, self.broken)


def is_noticed(test: Test) -> bool:
    """True if a test fails, in whatever way."""
    try:
        test()
    except (Exception, pytest.fail.Exception):
        return True
    return False


def nothing(*_: object, **__: object) -> None:
    """Instead of doing something."""


def none(*_: object, **__: object) -> Iterator[str]:
    """Instead of finding problems."""
    return iter(())


def always(*_: object, **__: object) -> bool:
    """Instead of looking."""
    return True
