"""Reading a YAML mapping field by field, as HiveD does with Go's yaml.v2.

`null` is a type's zero value, fields that nobody asks for are ignored, any scalar can be a text.
Problems are noted, not raised.
"""

from collections.abc import Mapping
from typing import Final

from kube.hived.yaml_tree import Scalar, Tree
from kube.read.fields import Problems
from kube.read.texts import TextRule, range_problem, show

_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"))
_FALSE: Final = frozenset(
    ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
)


class YamlFields:
    """A YAML mapping, where it stands, and where its problems go."""

    __slots__ = ("path", "problems", "values")

    def __init__(self, tree: Tree | None, *, path: str, problems: Problems) -> None:
        """Take a tree that should be a mapping."""
        self.path = path
        self.problems = problems
        self.values: Mapping[str, Tree] = {}
        if isinstance(tree, dict):
            self.values = tree
        elif not _is_null(tree):
            problems.add(path, f"must be a mapping, not {_show(tree)}")

    def note(self, key: str, message: str) -> None:
        """Note a problem of one field."""
        self.problems.add(f"{self.path}.{key}", message)

    def is_given(self, key: str) -> bool:
        """Whether a field is there and not null."""
        return not _is_null(self.values.get(key))

    def fields(self, key: str) -> "YamlFields":
        """Read a mapping; an empty one if it is missing."""
        path = f"{self.path}.{key}"
        return YamlFields(self.values.get(key), path=path, problems=self.problems)

    def items(self, key: str) -> "list[YamlFields]":
        """Read a list of mappings; an empty one if it is missing."""
        return [
            YamlFields(tree, path=f"{self.path}.{key}[{index}]", problems=self.problems)
            for index, tree in enumerate(self._list(key))
        ]

    def numbers(self, key: str, *, minimum: int, maximum: int) -> tuple[int, ...] | None:
        """Read a list of whole numbers; empty if missing, None if anything is wrong with it."""
        trees = self._list(key)
        numbers = [_parse_int(tree) for tree in trees]
        good = tuple(n for n in numbers if n is not None and minimum <= n <= maximum)
        if len(good) == len(trees):
            return good
        for index, (tree, number) in enumerate(zip(trees, numbers, strict=True)):
            if number is None or not minimum <= number <= maximum:
                problem = range_problem(_shown(tree), minimum=minimum, maximum=maximum)
                self.note(f"{key}[{index}]", problem)
        return None

    def words(self, key: str, rule: TextRule) -> tuple[str, ...]:
        """Read a list of texts; null ones are empty, and so are wrong ones, which are noted."""
        trees = self._list(key)
        return tuple(self._word(f"{key}[{i}]", tree, rule) or "" for i, tree in enumerate(trees))

    def text(self, key: str, rule: TextRule) -> str:
        """Read a text, however it was written; an empty one if it is missing or breaks the rule."""
        return self._text(key, rule) or ""

    def required_text(self, key: str, rule: TextRule, *, words: str = "must be set") -> str:
        """Read a text that must be there; `words` say so if it is not."""
        text = self._text(key, rule)
        if text == "":
            self.note(key, words)
        return text or ""

    def number(
        self, key: str, *, minimum: int, maximum: int, below: str = "", above: str = ""
    ) -> int | None:
        """Read a whole number, 0 if it is missing; None if it is wrong, which is noted.

        `below` and `above` are what HiveD says of a number outside.
        """
        tree = self.values.get(key)
        number = 0 if tree is None or _is_null(tree) else _parse_int(tree)
        if number is not None and minimum <= number <= maximum:
            return number
        shown = _shown(tree) if number is None else number
        problem = range_problem(shown, minimum=minimum, maximum=maximum)
        words = "" if number is None else below if number < minimum else above
        self.note(key, f"{words}: {problem}" if words else problem)
        return None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Read a truth value; a null one is false."""
        tree = self.values.get(key)
        if tree is None:
            return default
        if isinstance(tree, Scalar) and tree.is_plain:
            if tree.text in _TRUE:
                return True
            if tree.text in _FALSE or tree.is_null:
                return False
        self.note(key, f"must be true or false, not {_show(tree)}")
        return default

    def _text(self, key: str, rule: TextRule) -> str | None:
        """Read a text; None if it is wrong, which is noted."""
        return self._word(key, self.values.get(key), rule)

    def _word(self, key: str, tree: Tree | None, rule: TextRule) -> str | None:
        if tree is None or _is_null(tree):
            return ""
        if not isinstance(tree, Scalar):
            self.note(key, f"must be a string, not {_show(tree)}")
            return None
        problem = rule.problem(tree.text)
        if problem:
            self.note(key, problem)
            return None
        return tree.text

    def _list(self, key: str) -> list[Tree]:
        tree = self.values.get(key)
        if isinstance(tree, list):
            return tree
        if not _is_null(tree):
            self.note(key, f"must be a list, not {_show(tree)}")
        return []


def _is_null(tree: Tree | None) -> bool:
    return tree is None or (isinstance(tree, Scalar) and tree.is_null)


def _shown(tree: Tree | None) -> object:
    return tree.text if isinstance(tree, Scalar) else tree


def _show(tree: Tree | None) -> str:
    return show(_shown(tree))


def _parse_int(tree: Tree) -> int | None:
    """Read an integer as Go does: decimal, `0x`, `0b`, `0o` or a leading zero for octal."""
    if not isinstance(tree, Scalar) or not tree.is_plain or not tree.text.isascii():
        return None
    digits = tree.text.replace("_", "")
    is_octal = digits.lstrip("+-").startswith("0") and digits.isdecimal()
    try:
        return int(digits, 8 if is_octal else 0) if len(digits) <= 20 else None
    except ValueError:
        return None
