"""How fields are declared: each is kept, masked as names of a kind, or dropped. Pure.

A declaration is a function from a value to the masked value. What is not declared, or has another
form than was declared, is left out and noted, so that a field that is added elsewhere cannot show
a name. A declaration is asked twice with the same value (see `names`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cli.log.mask.names import Kind, Names, Word
from state.log.candidates import KnownNodes

_NUMBER_TEXT: Final = re.compile(r"[0-9]{1,9}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)?"
)


_DAMAGED: Final = (TypeError, ValueError, LookupError, AttributeError)
"""What a declaration raises for a value that no release has written."""


class LeftOutError(Exception):
    """A value is not what was declared."""


@dataclass(slots=True)
class Pass:
    """One pass over the rows: where names are looked up, and what was left out."""

    names: Names
    has_listed_cells: bool = False
    """Whether a Cluster document of the rows lists its cells, as HiveD's configuration does."""
    are_cells_listed: bool = False
    """Whether the one that is in force does."""
    known: KnownNodes = field(default_factory=KnownNodes)
    """The nodes that the engine of the epoch had observed by now."""
    masked: KnownNodes = field(default_factory=KnownNodes)
    """The same nodes by their pseudonyms."""
    hashes: dict[str, str] = field(default_factory=dict)
    """The hashes of masked documents, by those of the documents."""
    left_out: dict[str, int] = field(default_factory=dict)
    """What was left out, by its place in a row, and how often."""

    def leave_out(self, where: str) -> None:
        """Note that something was left out."""
        self.left_out[where] = self.left_out.get(where, 0) + 1


Mask = Callable[[Any, Pass, str], Any]
"""Masks a value; the text says where it is. Raises LeftOutError."""


def number(value: object, _: Pass, where: str) -> object:
    """Keep a number, true or false, or null."""
    if value is None or isinstance(value, bool | int | float):
        return value
    raise LeftOutError(where)


def number_text(value: object, _: Pass, where: str) -> object:
    """Keep a number that may be written as a text."""
    if isinstance(value, str) and _NUMBER_TEXT.fullmatch(value):
        return value
    return number(value, _, where)


def moment(value: object, _: Pass, where: str) -> object:
    """Keep a time."""
    if value is None or (isinstance(value, str) and _MOMENT.fullmatch(value)):
        return value
    raise LeftOutError(where)


def computed(_: object, __: Pass, ___: str) -> None:
    """Leave the place of a value that is computed from masked names (`cli.log.mask.replayed`)."""


def dropped(_: object, __: Pass, where: str) -> object:
    """Drop a value that is known and not needed."""
    raise DroppedError(where)


class DroppedError(LeftOutError):
    """A value is dropped on purpose."""


def words(*allowed: str) -> Mask:
    """Keep one of some words of ours, or null."""

    def mask(value: object, _: Pass, where: str) -> object:
        if value is None or value in allowed:
            return value
        raise LeftOutError(where)

    return mask


def name(kind: Kind, word: Word = Word.VALUE) -> Mask:
    """Mask a name, or keep null."""

    def mask(value: object, now: Pass, where: str) -> object:
        if value is None:
            return None
        return now.names.of(kind, text_of(value, where), word)

    return mask


def text_of(value: object, where: str) -> str:
    """Return a text. Raises LeftOutError for any other value."""
    if not isinstance(value, str):
        raise LeftOutError(where)
    return value


def list_of(value: object, where: str) -> Sequence[object]:
    """Return a list. Raises LeftOutError for any other value."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise LeftOutError(where)
    return value


def object_of(value: object, where: str) -> Mapping[str, object]:
    """Return a JSON object. Raises LeftOutError for any other value."""
    if not isinstance(value, Mapping):
        raise LeftOutError(where)
    return value


def each(inner: Mask) -> Mask:
    """Mask each entry of a list."""

    def mask(value: object, now: Pass, where: str) -> object:
        return [inner(one, now, where) for one in list_of(value, where)]

    return mask


def tuple_of(*inner: Mask) -> Mask:
    """Mask a list whose entries have different meanings."""

    def mask(value: object, now: Pass, where: str) -> object:
        entries = list_of(value, where)
        if len(entries) > len(inner):
            raise LeftOutError(where)
        return [one(entry, now, where) for one, entry in zip(inner, entries, strict=False)]

    return mask


def mapping(key: Mask, inner: Mask) -> Mask:
    """Mask the keys and the values of a mapping."""

    def mask(value: object, now: Pass, where: str) -> object:
        return {
            key(one, now, where): inner(entry, now, f"{where}[…]")
            for one, entry in object_of(value, where).items()
        }

    return mask


def optional(inner: Mask) -> Mask:
    """Keep null, and mask all else."""
    return lambda value, now, where: None if value is None else inner(value, now, where)


def fields(known: Mapping[str, Mask], *, has_effect: bool = True) -> Mask:
    """Mask the fields of an object; one that is not declared is left out.

    That is not noted where such fields have no effect.
    """

    def mask(value: object, now: Pass, where: str) -> object:
        found: dict[str, Any] = {}
        for key, entry in object_of(value, where).items():
            inner = known.get(key)
            try:
                if inner is not None:
                    found[key] = inner(entry, now, f"{where}.{key}")
                elif has_effect:
                    now.leave_out(f"{where}.{key}")
            except DroppedError:
                continue
            except LeftOutError as told:
                now.leave_out(str(told))
            except _DAMAGED:
                now.leave_out(f"{where}.{key}")
        return found

    return mask
