"""YAML text into plain data, for texts that somebody else wrote.

Built from the parser's events and not by a loader, because a text can be hostile: size, nesting
and the number of values are bounded, an alias counts as much as what it stands for (so a few lines
cannot unfold into billions of values), and a key given twice is a problem, not a silent loss.

Plain values follow the core schema of YAML 1.2: only `true` and `false` are booleans, so a user
named `on` or a class named `no` needs no quotes; there are no dates and no base-60 numbers. Keys
are always text. Merge keys (`<<`) and tags have no meaning here.

The parser is libyaml's: the one in Python needs half a minute for the largest text we take.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from policy.errors import Problem, SpecError
from policy.wording import join_path, quote

MAX_BYTES: Final = 1_048_576
"""As much as a ConfigMap can hold."""
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 32

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What a YAML text can hold."""

_Path = tuple[str | int, ...]


class _WrittenInt(int):
    """A number that would lose its form as text: a node may be called 0010."""

    written: str


class _WrittenFloat(float):
    """The same for fractions: 1.10 is not 1.1 where it is a name."""

    written: str


_TEXT_TAGS: Final = (None, "!", "tag:yaml.org,2002:str")
_KEYWORDS: Final[dict[str, Plain]] = {
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


@dataclass(frozen=True, slots=True)
class YamlText:
    """What a text holds, and what is wrong with it although it can be read."""

    value: Plain
    problems: tuple[Problem, ...]


def parse_yaml(text: str) -> YamlText:
    """Read one YAML document; an empty text holds None.

    Raises SpecError for a text that cannot be read. Positions are as people count, from 1.
    """
    encoded = _encode(text)
    reader = _Reader(_events(encoded))
    value = reader.read()
    return YamlText(value, tuple(reader.problems))


def _encode(text: str) -> bytes:
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise _error(f"{_place(text[: exc.start])}: not a Unicode character") from exc
    if len(encoded) > MAX_BYTES:
        raise _error(f"the text has {len(encoded)} bytes; at most {MAX_BYTES} are read")
    return encoded


def _events(encoded: bytes) -> Iterator[Event]:
    """Yield the parser's events; its errors become ours."""
    try:
        yield from yaml.parse(encoded, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as exc:
        raise _error(_syntax_message(exc)) from exc
    except yaml.reader.ReaderError as exc:
        before = encoded[: exc.position].decode("utf-8", "replace")
        raise _error(f"{_place(before)}: not valid YAML: {exc.reason}") from exc


def _syntax_message(exc: yaml.MarkedYAMLError) -> str:
    mark = exc.problem_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    # `occupied: > 4` is the natural thing to write, and YAML reads it as the start of a text block.
    hint = (
        '; put a comparison in quotes, as in "> 4"'
        if exc.context == "while scanning a block scalar"
        else ""
    )
    return f"{place}not valid YAML: {exc.problem}{hint}"


def _error(message: str) -> SpecError:
    return SpecError([Problem("", message)])


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

    plain: Plain
    size: int
    height: int


@dataclass(slots=True)
class _Reader:
    """Builds the value, one event at a time; recursion is bounded by MAX_DEPTH."""

    events: Iterator[Event]
    problems: list[Problem] = field(default_factory=list)
    _anchors: dict[str, _Value | None] = field(default_factory=dict)
    """None while the anchored value is still being read."""
    _size: int = 0

    def read(self) -> Plain:
        value: Plain = None
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _error(f"{_at(event)}: a second document starts; only one is allowed")
                value = self._node(next(self.events), ()).plain
            elif isinstance(event, StreamEndEvent):
                break
        return value

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
        return _Value(_scalar(event), size=1, height=0)

    def _sequence(self, path: _Path) -> _Value:
        items: list[Plain] = []
        size, height = 1, 0
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            item = self._node(event, (*path, len(items)))
            items.append(item.plain)
            size, height = size + item.size, max(height, item.height + 1)
        return _Value(items, size=size, height=height)

    def _mapping(self, path: _Path) -> _Value:
        entries: dict[str, Plain] = {}
        size, height = 1, 0
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, path)
            item = self._node(next(self.events), (*path, key))
            if key in entries:
                message = f"the key is given twice, again at {_at(event)}"
                self.problems.append(Problem(join_path((*path, key)), message))
            entries.setdefault(key, item.plain)
            size, height = size + item.size, max(height, item.height + 1)
        return _Value(entries, size=size, height=height)

    def _key(self, event: Event, path: _Path) -> str:
        if isinstance(event, ScalarEvent):
            self._check_tag(event, path)
            if event.anchor is not None:
                self._anchors[event.anchor] = _Value(event.value, size=1, height=0)
            return str(event.value)
        if isinstance(event, AliasEvent):
            known = self._alias(event, path).plain
            if isinstance(known, str):
                return known
        raise _error(f"{_at(event)}: a key must be text")

    def _alias(self, event: AliasEvent, path: _Path) -> _Value:
        name = str(event.anchor)
        value = self._anchors.get(name)
        if value is None:
            what = "holds itself" if name in self._anchors else "is not known"
            hint = "; put a text that starts with * in quotes" if what == "is not known" else ""
            raise _error(f"{_at(event)}: the alias {quote('*' + name)} {what}{hint}")
        self._count(value.size, height=value.height, depth=len(path), event=event)
        return value

    def _count(self, size: int, *, height: int, depth: int, event: Event) -> None:
        self._size += size
        if self._size > MAX_VALUES:
            raise _error(f"{_at(event)}: more than {MAX_VALUES} values, aliases unfolded")
        if depth + height > MAX_DEPTH:
            raise _error(f"{_at(event)}: nested more than {MAX_DEPTH} deep")

    def _check_tag(self, event: NodeEvent, path: _Path) -> None:
        tag = getattr(event, "tag", None)
        if tag not in _TEXT_TAGS:
            message = f"the tag {quote(str(tag))} is not allowed"
            hint = "put a text that starts with ! in quotes"
            self.problems.append(Problem(join_path(path), f"{message}; {hint}"))


def as_written(value: object) -> str:
    """Return a scalar as its author wrote it; "" for nothing."""
    if isinstance(value, _WrittenInt | _WrittenFloat):
        return value.written
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _int(text: str) -> int:
    number = int(text, 0 if text[:2] in ("0o", "0x") else 10)
    if str(number) == text:
        return number
    kept = _WrittenInt(number)
    kept.written = text
    return kept


def _float(text: str) -> float:
    number = float(text)
    if str(number) == text:
        return number
    kept = _WrittenFloat(number)
    kept.written = text
    return kept


def _scalar(event: ScalarEvent) -> Plain:
    """Resolve a plain scalar by the core schema; a quoted one is text."""
    text = str(event.value)
    if not event.implicit[0]:
        return text
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if _INT.fullmatch(text):
        return _int(text)
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", ""))
    return text
