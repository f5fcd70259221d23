"""HiveD's annotations as YAML: values read as HiveD does with Go's yaml.v2.

`null` is a type's zero value, fields that HiveD does not know are ignored, and any scalar can be a
text as it was written: a VC named `010` is not the VC `8`. Problems are noted, not raised.
"""

import re
from typing import ClassVar, Final

import orjson

from kube.values.fields import Fields, Problems
from kube.values.size_limits import MAX_GANG_SIZE
from kube.values.texts import TextRule, range_problem
from policy.documents.yaml_tree import Dialect, YamlError, read_tree
from policy.errors import RequestError
from policy.wording import describe

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS: Final = {
    spelling: is_true
    for words, is_true in ((("y", "yes", "on", "true"), True), (("n", "no", "off", "false"), False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
_MAX_DIGITS: Final = 20
_UNSAFE: Final = re.compile(r"[\x7f-\uffff]")


class Unquoted(str):
    """A scalar without quotes, as it was written: it can also be a number or a boolean."""

    __slots__ = ()


class YamlFields(Fields):
    """A mapping of HiveD's, its path, and the list of its problems."""

    __slots__ = ()
    max_items: ClassVar = MAX_GANG_SIZE

    @staticmethod
    def parse_int(value: object) -> int | None:
        """Read an integer as Go does: decimal, `0x`, `0b`, `0o` or a leading zero for octal."""
        if not isinstance(value, Unquoted) or not value.isascii() or len(value) > _MAX_DIGITS:
            return None
        digits = value.replace("_", "")
        is_octal = digits.lstrip("+-").startswith("0") and digits.isdecimal()
        try:
            return int(digits, 8 if is_octal else 0)
        except ValueError:
            return None

    def text(self, key: str, rule: TextRule | None = None) -> str:
        """Read a text, however it was written; an empty one if it is missing or breaks the rule."""
        return str(super().text(key, rule))

    def words(self, key: str, rule: TextRule) -> tuple[str, ...]:
        """Read a list of texts; null ones are empty, and so are wrong ones, which are noted."""
        texts = {f"{key}[{index}]": text for index, text in enumerate(self.entries(key) or ())}
        entries = YamlFields(texts, key=self.path, parent=None, problems=self.problems)
        return tuple(entries.text(entry, rule) for entry in texts)

    def count(
        self, key: str, *, minimum: int, maximum: int, below: str, above: str = ""
    ) -> int | None:
        """Read a whole number, 0 if it is missing; None if it is wrong, which is noted.

        `below` and `above` are HiveD's words for a number outside the range.
        """
        value = self.values.get(key)
        number = 0 if value is None else self.parse_int(value)
        if number is not None and minimum <= number <= maximum:
            return number
        shown = value if number is None else number
        problem = range_problem(shown, minimum=minimum, maximum=maximum)
        words = "" if number is None else below if number < minimum else above
        self.note(key, f"{words}: {problem}" if words else problem)
        return None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Read a boolean; null is false."""
        value = self.values.get(key)
        if value is None:
            return default and key not in self.values
        if isinstance(value, Unquoted) and value in _FLAGS:
            return _FLAGS[value]
        self.note(key, f"must be true or false, not {describe(value)}")
        return default


def open_yaml(text: str, *, path: str, max_bytes: int) -> YamlFields:
    """Read a text whose first document is a mapping; RequestError if it cannot be read."""
    dialect = Dialect(scalar=_scalar, max_bytes=max_bytes, is_strict=False)
    try:
        tree, _ = read_tree(text, dialect)
    except YamlError as exc:
        raise RequestError.at(path, str(exc)) from exc
    return YamlFields(tree, key=path, parent=None, problems=Problems())


def format_yaml(value: object) -> str:
    """Write plain data so that any YAML reader reads it again: JSON without other characters.

    YAML folds lines at U+2028 and forbids a few more characters that JSON leaves as they are.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", orjson.dumps(value).decode())


def _scalar(text: str, is_unquoted: bool) -> str | None:
    if not is_unquoted:
        return text
    return None if text in _NULLS else Unquoted(text)
