"""YAML text into a tree of lists, mappings and scalars: the one reader of YAML.

It is built from the parser's events, because a text can be hostile: size, nesting and the number of
values are bounded, and an alias counts as much as what it stands for, so a few lines cannot unfold
into billions of values. The composer of the library is not used: a few kilobytes of `[[[[…` make
it overflow the stack, which ends the process.

What differs between texts is a `Dialect`: what a scalar means, and whether mistakes are problems or
are passed over as Go's yaml.v2 does, which HiveD uses.

The parser is libyaml's: the one in Python needs half a minute for the largest text we take.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from policy.errors import Problem
from policy.wording import join_path, quote

MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 32

Scalar = None | bool | int | float | str
Plain = Scalar | list["Plain"] | dict[str, "Plain"]
"""What a YAML text can hold."""

_Path = tuple[str | int, ...]
_TEXT_TAGS: Final = (None, "!", "tag:yaml.org,2002:str")


class YamlError(ValueError):
    """The text cannot be read; the message says where and why, counting from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How texts of one kind are read."""

    scalar: Callable[[str, bool], Scalar]
    """What a scalar means, by its text and whether it was written without quotes."""
    max_bytes: int
    is_strict: bool
    """Whether a second document, a tag, a key given twice and a key that is not text are problems.

    Otherwise, as in yaml.v2, only the first document is read, tags have no meaning, of equal keys
    the last counts, and keys that are not text are left out. Merge keys (`<<`) are refused.
    """


def read_tree(text: str, dialect: Dialect) -> tuple[Plain, list[Problem]]:
    """Read a text; return also the problems with which it can still be read. Raises YamlError."""
    reader = _Reader(_events(_encode(text, dialect.max_bytes)), dialect)
    return reader.read(), reader.problems


def _encode(text: str, max_bytes: int) -> bytes:
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise YamlError(f"{_place(text[: exc.start])}: not a Unicode character") from exc
    if len(encoded) > max_bytes:
        raise YamlError(f"the text has {len(encoded)} bytes; at most {max_bytes} are read")
    return encoded


def _events(encoded: bytes) -> Iterator[Event]:
    """Yield the parser's events; its errors become ours."""
    try:
        yield from yaml.parse(encoded, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as exc:
        raise YamlError(_syntax_message(exc)) from exc
    except yaml.reader.ReaderError as exc:
        before = encoded[: exc.position].decode("utf-8", "replace")
        raise YamlError(f"{_place(before)}: not valid YAML: {exc.reason}") from exc


def _syntax_message(exc: yaml.MarkedYAMLError) -> str:
    mark = exc.problem_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    # `occupied: > 4` is the natural thing to write, and YAML reads it as the start of a text block.
    hint = (
        '; put a comparison in quotes, as in "> 4"'
        if exc.context == "while scanning a block scalar"
        else ""
    )
    return f"{place}not valid YAML: {exc.problem or exc.context}{hint}"


def _place(before: str) -> str:
    """Say where a text ends."""
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _at(event: Event) -> str:
    mark = event.start_mark
    assert mark is not None  # only events made by hand have none
    return f"line {mark.line + 1}, column {mark.column + 1}"


@dataclass(frozen=True, slots=True)
class _Value:
    """A value with what an alias to it would add: how many values, how deep."""

    tree: Plain
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class _Reader:
    """Builds the tree, one event at a time; recursion is bounded by MAX_DEPTH."""

    events: Iterator[Event]
    dialect: Dialect
    problems: list[Problem] = field(default_factory=list)
    _anchors: dict[str, _Value | None] = field(default_factory=dict)
    """None while the anchored value is still being read."""
    _size: int = 0

    def read(self) -> Plain:
        """Read the document; a text without one holds an empty scalar."""
        found: _Value | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if found is not None:
                    raise YamlError(f"{_at(event)}: a second document starts; only one is allowed")
                found = self._node(next(self.events), ())
            elif isinstance(event, DocumentEndEvent) and not self.dialect.is_strict:
                break
        return found.tree if found is not None else self.dialect.scalar("", True)

    def _node(self, event: Event, path: _Path) -> _Value:
        if isinstance(event, AliasEvent):
            return self._alias(event, path)
        assert isinstance(event, NodeEvent)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value = self._fresh(event, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _fresh(self, event: NodeEvent, path: _Path) -> _Value:
        self._count(1, height=0, depth=len(path), event=event)
        self._check_tag(event, path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        assert isinstance(event, ScalarEvent)
        return _Value(self.dialect.scalar(event.value, event.implicit[0]))

    def _sequence(self, path: _Path) -> _Value:
        items: list[Plain] = []
        size, height = 1, 0
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            item = self._node(event, (*path, len(items)))
            items.append(item.tree)
            size, height = size + item.size, max(height, item.height + 1)
        return _Value(items, size=size, height=height)

    def _mapping(self, path: _Path) -> _Value:
        entries: dict[str, Plain] = {}
        size, height = 1, 0
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, path)
            item = self._node(next(self.events), (*path, key or ""))
            if key is not None and not self._is_repeated(key, entries, path=path, event=event):
                entries[key] = item.tree
            size, height = size + item.size, max(height, item.height + 1)
        return _Value(entries, size=size, height=height)

    def _is_repeated(
        self, key: str, entries: dict[str, Plain], *, path: _Path, event: Event
    ) -> bool:
        """Note that a key is given twice, where that is a problem: its first value counts."""
        if key not in entries or not self.dialect.is_strict:
            return False
        message = f"the key is given twice, again at {_at(event)}"
        self.problems.append(Problem(join_path((*path, key)), message))
        return True

    def _key(self, event: Event, path: _Path) -> str | None:
        """Read a key; None for one that is to be left out."""
        if isinstance(event, ScalarEvent):
            return self._scalar_key(event, path)
        if isinstance(event, AliasEvent) or not self.dialect.is_strict:
            known = self._node(event, (*path, "")).tree
            if isinstance(known, str) or not self.dialect.is_strict:
                return known if isinstance(known, str) else None
        raise YamlError(f"{_at(event)}: a key must be a string")

    def _scalar_key(self, event: ScalarEvent, path: _Path) -> str:
        self._check_tag(event, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Value(self.dialect.scalar(event.value, False))
        if event.value == "<<" and event.implicit[0] and not self.dialect.is_strict:
            raise YamlError(f'{_at(event)}: merge keys ("<<") are not supported')
        return str(event.value)

    def _alias(self, event: AliasEvent, path: _Path) -> _Value:
        name = str(event.anchor)
        value = self._anchors.get(name)
        if value is None:
            what = "holds itself" if name in self._anchors else "is not known"
            hint = "; put a text that starts with * in quotes" if what == "is not known" else ""
            raise YamlError(f"{_at(event)}: the alias {quote('*' + name)} {what}{hint}")
        self._count(value.size, height=value.height, depth=len(path), event=event)
        return value

    def _count(self, size: int, *, height: int, depth: int, event: Event) -> None:
        self._size += size
        if self._size > MAX_VALUES:
            raise YamlError(f"{_at(event)}: more than {MAX_VALUES} values, aliases unfolded")
        if depth + height > MAX_DEPTH:
            raise YamlError(f"{_at(event)}: nested more than {MAX_DEPTH} deep")

    def _check_tag(self, event: NodeEvent, path: _Path) -> None:
        tag = getattr(event, "tag", None)
        if tag not in _TEXT_TAGS and self.dialect.is_strict:
            message = f"the tag {quote(str(tag))} is not allowed"
            hint = "put a text that starts with ! in quotes"
            self.problems.append(Problem(join_path(path), f"{message}; {hint}"))
