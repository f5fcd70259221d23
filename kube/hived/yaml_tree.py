"""YAML that somebody else wrote, as a tree of what was written.

The parser's own composer is not used: in C it overflows the stack, and so ends the process, on a
few kilobytes of `[[[[…`; and it forgets how a scalar was written, so that a VC named `010` would
become 8. Here the parser's events become a tree of bounded depth. An alias shares its node and
costs nothing; merge keys (`<<`), which could, are refused. As in Go's yaml.v2, which HiveD uses, of
equal keys the last counts, and only the first document is read.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson
import yaml

from kube.read.texts import show

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH: Final = 20
_UNSAFE: Final = re.compile(r"[\x7f-\uffff]")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


class YamlError(ValueError):
    """The text cannot be read; the message completes "must be"."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as it was written; a quoted one is a text, whatever it looks like."""

    text: str
    is_plain: bool = True

    @property
    def is_null(self) -> bool:
        """Whether it says nothing."""
        return self.is_plain and self.text in _NULLS


Tree: TypeAlias = Scalar | list["Tree"] | dict[str, "Tree"]


def parse_yaml(text: str, *, max_length: int) -> Tree:
    """Read the first document of a text; raise YamlError for anything that cannot be read."""
    if len(text) > max_length:
        raise YamlError(f"at most {max_length} characters, not {len(text)}")
    try:
        with closing(yaml.parse(text, Loader=_LOADER)) as events:
            return _Builder(events).build()
    except yaml.MarkedYAMLError as exc:
        raise YamlError(f"valid YAML: {_describe(exc)}") from exc
    except (yaml.YAMLError, UnicodeError) as exc:
        raise YamlError("valid YAML: it has characters that are not allowed") from exc


def format_yaml(value: object) -> str:
    """Write plain data so that any YAML reader reads it again: JSON without other characters.

    YAML folds lines at U+2028 and forbids a few more characters that JSON leaves as they are.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", orjson.dumps(value).decode())


def _describe(error: yaml.MarkedYAMLError) -> str:
    where = error.problem_mark
    place = f" at line {where.line + 1}, column {where.column + 1}" if where else ""
    return f"{error.problem or error.context}{place}"


class _Builder:
    """Builds a tree from a parser's events."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, Tree] = {}

    def build(self) -> Tree:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                tree = self._tree(next(self._events), depth=0)
                next(self._events)  # the document's end: raises if more follows
                return tree
        return Scalar("")

    def _tree(self, event: yaml.Event, depth: int) -> Tree:
        if depth > _MAX_DEPTH:
            raise YamlError(f"nested at most {_MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            return self._anchored(event.anchor)
        tree = self._new_tree(event, depth)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._anchors[event.anchor] = tree
        return tree

    def _new_tree(self, event: yaml.Event, depth: int) -> Tree:
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, is_plain=event.implicit[0])
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._items(depth))
        return self._mapping(depth)

    def _items(self, depth: int) -> Iterator[Tree]:
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            yield self._tree(event, depth + 1)

    def _mapping(self, depth: int) -> dict[str, Tree]:
        mapping: dict[str, Tree] = {}
        items = self._items(depth)
        for key, value in zip(items, items, strict=True):
            if key == Scalar("<<"):
                raise YamlError('without merge keys ("<<")')
            if isinstance(key, Scalar):
                mapping[key.text] = value
        return mapping

    def _anchored(self, anchor: str | None) -> Tree:
        if anchor is None or anchor not in self._anchors:
            raise YamlError(f"valid YAML: unknown alias {show(anchor)}")
        return self._anchors[anchor]
