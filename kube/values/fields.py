"""JSON objects that others wrote, read field by field.

A field of the wrong type is noted as a problem and counts as missing, so that one pass finds every
problem. As in Kubernetes, `null` is the same as a missing field. Only `Problems.check` raises.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from kube.values.size_limits import MAX_ITEMS, MAX_PROBLEMS
from kube.values.texts import TextRule, parse_number, range_problem
from policy.errors import Problem, RequestError
from policy.wording import describe

_LISTS: Final = (list, tuple)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_SHOWN_KEY_LENGTH: Final = 320


@dataclass(slots=True)
class Problems:
    """The problems found so far."""

    found: list[Problem] = field(default_factory=list)
    left_out: int = 0

    def add(self, path: str, message: str) -> None:
        """Note one more problem."""
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(path, message))
        else:
            self.left_out += 1

    def check(self) -> None:
        """Raise RequestError with all problems, if there are any."""
        if self.left_out:
            raise RequestError([*self.found, Problem("", f"and {self.left_out} more problems")])
        if self.found:
            raise RequestError(self.found)


class Fields:
    """A JSON object, its path, and the list of its problems."""

    __slots__ = ("_is_map", "_key", "_parent", "problems", "values")
    max_items: ClassVar = MAX_ITEMS

    def __init__(
        self, values: object, *, key: str, parent: "Fields | None", problems: Problems
    ) -> None:
        """Take a value that should be an object, with its key in the parent."""
        self.problems = problems
        self._key = key
        self._parent = parent
        self._is_map = False
        self.values: Mapping[str, Any] = values if type(values) is dict else self._checked(values)

    def _checked(self, values: object) -> Mapping[str, Any]:
        if values is None:
            return _NOTHING
        if isinstance(values, Mapping):
            return values
        self.problems.add(self.path, f"must be a mapping, not {describe(values)}")
        return _NOTHING

    @staticmethod
    def parse_int(value: object) -> int | None:
        """Read a whole number as this format writes it; None for anything else."""
        return value if type(value) is int else None

    @property
    def path(self) -> str:
        """The path of this object; built only for a problem."""
        return self._parent.path_of(self._key) if self._parent else self._key

    def path_of(self, key: str) -> str:
        """The path of a field."""
        if self._is_map:
            return f"{self.path}[{key[:_SHOWN_KEY_LENGTH]}]"
        path = self.path
        return f"{path}.{key}" if path else key

    def note(self, key: str, message: str) -> None:
        """Note a problem of one field."""
        self.problems.add(self.path_of(key), message)

    def fields(self, key: str) -> Self:
        """Read an object; an empty one if it is missing."""
        return type(self)(self.values.get(key), key=key, parent=self, problems=self.problems)

    def map(self, key: str) -> Self:
        """Read an object whose keys are names, as those of labels are."""
        read = self.fields(key)
        read._is_map = True
        return read

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Read an object as it is; an empty one if it is missing."""
        value = self.values.get(key)
        if value is None:
            return _NOTHING
        return value if isinstance(value, dict) else self.fields(key).values

    def items(self, key: str) -> list[Self]:
        """Read a list of objects; an empty one if it is missing."""
        if self.values.get(key) is None:
            return []
        values = self.entries(key) or ()
        if len(values) > self.max_items:
            self.note(key, f"must have at most {self.max_items} entries, not {len(values)}")
            return []
        return [
            type(self)(value, key=f"{key}[{index}]", parent=self, problems=self.problems)
            for index, value in enumerate(values)
        ]

    def entries(self, key: str) -> Sequence[Any] | None:
        """Read a list as it is; an empty one if it is missing, None if it is no list."""
        values = self.values.get(key)
        if values is None:
            return ()
        if isinstance(values, _LISTS):
            return values
        self.note(key, f"must be a list, not {describe(values)}")
        return None

    def texts(self, key: str) -> Self:
        """Read an object of texts, as labels and annotations are; others are noted and left out."""
        read = self.map(key)
        for name, text in read.values.items():
            if type(name) is not str or type(text) is not str:
                read.values = _only_texts(read)
                break
        return read

    def text(self, key: str, rule: TextRule | None = None) -> str:
        """Read a text; an empty one if it is missing or breaks the rule."""
        value = self.values.get(key)
        if value is None or value == "":
            return ""
        if isinstance(value, str):
            problem = rule.problem(value) if rule else None
            if problem is None:
                return value
        else:
            problem = f"must be a string, not {describe(value)}"
        self.note(key, problem)
        return ""

    def required_text(self, key: str, rule: TextRule, *, words: str = "is required") -> str:
        """Read a text that must be there; `words` say so if it is not."""
        if self.values.get(key) in (None, ""):
            self.note(key, words)
        return self.text(key, rule)

    def number_text(self, key: str, *, minimum: int = 1, maximum: int) -> int | None:
        """Read a number that is written as a text, as in a label; None if missing or wrong."""
        text = self.text(key)
        if not text:
            return None
        number = parse_number(text)
        if number is None or not minimum <= number <= maximum:
            self.note(key, range_problem(text, minimum=minimum, maximum=maximum))
            return None
        return number

    def number(self, key: str, *, minimum: int, maximum: int) -> int | None:
        """Read a whole number; None if missing or wrong."""
        value = self.values.get(key)
        if value is None:
            return None
        number = self.parse_int(value)
        if number is not None and minimum <= number <= maximum:
            return number
        self.note(key, range_problem(value, minimum=minimum, maximum=maximum))
        return None

    def numbers(self, key: str, *, minimum: int, maximum: int) -> tuple[int, ...] | None:
        """Read a list of whole numbers; empty if missing, None if anything is wrong with it."""
        values = self.entries(key)
        if values is None:
            return None
        good: list[int] = []
        for index, value in enumerate(values):
            number = self.parse_int(value)
            if number is not None and minimum <= number <= maximum:
                good.append(number)
            else:
                problem = range_problem(value, minimum=minimum, maximum=maximum)
                self.note(f"{key}[{index}]", problem)
        return tuple(good) if len(good) == len(values) else None


def _only_texts(read: Fields) -> dict[str, str]:
    texts: dict[str, str] = {}
    entries: Iterable[tuple[object, object]] = read.values.items()
    for name, text in entries:
        if not isinstance(name, str):
            read.problems.add(read.path, f"must have strings as keys, not {describe(name)}")
        elif not isinstance(text, str):
            read.note(name, f"must be a string, not {describe(text)}")
        else:
            texts[name] = text
    return texts
