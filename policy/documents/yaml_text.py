"""Policy documents as YAML: what plain values mean in them.

Plain values follow the core schema of YAML 1.2: only `true` and `false` are booleans, so a user
named `on` or a class named `no` needs no quotes; there are no dates and no base-60 numbers. Keys
are always text. Merge keys (`<<`) and tags have no meaning here.
"""

import re
from typing import Final

from policy.documents.yaml_tree import Dialect, Plain, Scalar, YamlError, read_tree
from policy.errors import Problem, SpecError

MAX_BYTES: Final = 1_048_576
"""As much as a ConfigMap can hold."""


class _WrittenInt(int):
    """A number that would lose its form as text: a node may be named 0010."""

    written: str


class _WrittenFloat(float):
    """The same for fractions: 1.10 is not 1.1 where it is a name."""

    written: str


_KEYWORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# More digits than any number we know stay text: to convert them would cost more than linear time.
_INT: Final = re.compile(r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,9})?"
)
_SPECIAL_FLOAT: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def parse_yaml(text: str) -> tuple[Plain, list[Problem]]:
    """Read one YAML document, and the problems with which it can be read; None for an empty text.

    Raises SpecError for a text that cannot be read. Positions count from 1.
    """
    try:
        return read_tree(text, _DIALECT)
    except YamlError as exc:
        raise SpecError([Problem("", str(exc))]) from exc


def as_written(value: object) -> str:
    """Return a scalar as it was written; "" for null."""
    if isinstance(value, _WrittenInt | _WrittenFloat):
        return value.written
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _keep_form(number: float, text: str) -> float:
    """Let a number remember its form, if that is not the usual one."""
    if str(number) == text:
        return number
    kept: _WrittenInt | _WrittenFloat
    kept = _WrittenInt(number) if isinstance(number, int) else _WrittenFloat(number)
    kept.written = text
    return kept


def _resolve(text: str, is_unquoted: bool) -> Scalar:
    """Resolve a scalar by the core schema; a quoted one is text."""
    if not is_unquoted:
        return text
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if _INT.fullmatch(text):
        return _keep_form(int(text, 0 if text[:2] in ("0o", "0x") else 10), text)
    if _FLOAT.fullmatch(text):
        return _keep_form(float(text), text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", ""))
    return text


_DIALECT: Final = Dialect(scalar=_resolve, max_bytes=MAX_BYTES, is_strict=True)
