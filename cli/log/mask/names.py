"""Names and their pseudonyms. Pure.

A replay sorts by names, so pseudonyms keep the order of the names that they stand for. For that,
the rows are read twice: `Collected` gathers the names of each kind, `assign` sorts them and numbers
them, and `Pseudonyms` answers in the second pass.

Names that code compares with each other are one kind, whatever they name: the labels of a node are
its place, its leaf type and its name. Their pseudonyms begin with the number, so that the word
behind it may differ: `b0012-node`, `b0013-type`.

Names are also compared as parts of longer texts, such as `namespace/pod`. There `a-b/x` is before
`a/x`, although `a` is before `a-b`. So the pseudonym of a name that begins with another one and
goes on with a character before the separator begins with the pseudonym of that one.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final, Protocol

from policy.cluster.derived import NODE_LABEL
from policy.cluster.derived_cells import UNKNOWN_TYPE
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import DEFAULT_VC

_DIGITS: Final = 4
_AFTER_TYPES: Final = "#@"
"""What follows a leaf type in the name of a chain: `A100#1`, `A100@east`."""


class Kind(StrEnum):
    """Names that have one order."""

    USER = "user"
    GROUP = "group"
    NAMESPACE = "namespace"
    GANG = "gang"
    POD = "pod"
    UID = "uid"
    VC = "vc"
    CLASS = "class"
    PLACE = "place"
    """Nodes, leaf types, domains, and all labels of nodes."""
    PINNED = "pinned"
    WINDOW = "window"
    LEVEL = "level"
    """Levels of the queue."""
    LABEL = "label"
    """Keys and values of the labels of pods."""
    OBJECT = "object"
    """Workloads and other objects that are neither pods nor gangs."""
    TEXT = "text"
    """Sentences and notes."""


class Word(StrEnum):
    """What a name of the kind `PLACE` names. Of several, the first one here is shown."""

    NODE = "node"
    TYPE = "type"
    DOMAIN = "domain"
    CELL = "cell"
    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """How the names of a kind are numbered."""

    kept: tuple[str, ...] = ()
    """Names that code knows, sorted; they stay as they are."""
    begins: tuple[str, ...] = ()
    """What pseudonyms begin with: before the first of these names, between them, and behind."""
    separator: str = ""
    """What follows a name in longer texts that are compared."""


_SPACES: Final[Mapping[Kind, _Space]] = {
    Kind.NAMESPACE: _Space(separator="/"),
    Kind.VC: _Space(kept=(DEFAULT_VC,), begins=("VC-", "vc-")),
    Kind.PLACE: _Space(
        kept=("amd.com/gpu", NODE_LABEL, "nvidia.com/gpu", UNKNOWN_TYPE),
        begins=("a", "b", "l", "o", "v"),
    ),
    Kind.LEVEL: _Space(kept=(DEFAULT_QUEUES.levels[0].name,), begins=("LEVEL-", "level-")),
}


class Names(Protocol):
    """Gives names pseudonyms: in the first pass, only notes them."""

    def of(self, kind: Kind, text: str, word: Word = Word.VALUE) -> str:
        """Return the pseudonym of a name; an empty name stays empty."""

    def known(self, kind: Kind) -> Mapping[str, str]:
        """Return the pseudonyms of all names of a kind; none in the first pass."""


class UnknownNameError(Exception):
    """The second pass met a name that the first one did not: the rows have changed meanwhile."""


class Collected:
    """The names of the first pass."""

    def __init__(self) -> None:
        self._names: dict[Kind, dict[str, Word]] = {kind: {} for kind in Kind}
        self._types: set[str] = set()

    def of(self, kind: Kind, text: str, word: Word = Word.VALUE) -> str:
        """Note a name, and return it as it is."""
        names = self._names[kind]
        if word is Word.TYPE:
            self._types.add(text)
        before = names.get(text)
        if text and (before is None or _order(word) < _order(before)):
            names[text] = word
        return text

    def known(self, kind: Kind) -> Mapping[str, str]:
        """Return nothing: there are no pseudonyms yet."""
        return {}

    def assign(self) -> "Pseudonyms":
        """Give all names their pseudonyms."""
        return Pseudonyms(
            {
                kind: _number(kind, names, types=self._types if kind is Kind.PLACE else ())
                for kind, names in self._names.items()
            }
        )


class Pseudonyms:
    """The pseudonyms of all names."""

    def __init__(self, known: Mapping[Kind, Mapping[str, str]]) -> None:
        self._known = known

    def of(self, kind: Kind, text: str, word: Word = Word.VALUE) -> str:
        """Return the pseudonym of a name. Raises UnknownNameError."""
        found = self._known[kind].get(text) if text else ""
        if found is None:
            raise UnknownNameError(kind)
        return found

    def known(self, kind: Kind) -> Mapping[str, str]:
        """Return the pseudonyms of all names of a kind."""
        return self._known.get(kind, {})

    @property
    def count(self) -> int:
        """The number of names that have a pseudonym."""
        return sum(map(len, self.originals().values()))

    def originals(self) -> dict[str, dict[str, str]]:
        """Return the name behind each pseudonym, by kind."""
        return {
            str(kind): {masked: name for name, masked in names.items() if masked != name}
            for kind, names in self._known.items()
        }


def _order(word: Word) -> int:
    return list(Word).index(word)


def _number(kind: Kind, names: Mapping[str, Word], *, types: Iterable[str]) -> dict[str, str]:
    space = _SPACES.get(kind, _Space(begins=(f"{kind}-",)))
    ordered = [name for name in sorted(names) if name not in space.kept]
    if kind is Kind.UID:
        found = {name: _uuid(number) for number, name in enumerate(ordered, 1)}
    else:
        found = _Numbering(kind, space, names, types).of(ordered)
    return found | {name: name for name in space.kept}


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


class _Numbering:
    """Numbers sorted names."""

    def __init__(
        self, kind: Kind, space: _Space, words: Mapping[str, Word], types: Iterable[str]
    ) -> None:
        self._kind = kind
        self._space = space
        self._words = words
        self._digits = max(_DIGITS, len(str(len(words))))
        self._parents = _prefixes(sorted(types), between=_AFTER_TYPES)

    def of(self, ordered: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        above: list[str] = []
        for number, name in enumerate(ordered, 1):
            while above and not self._is_below(name, above[-1]):
                above.pop()
            begin = found[above[-1]] + self._joint(name, above[-1]) if above else self._begin(name)
            word = f"-{self._words[name]}" if self._kind is Kind.PLACE else ""
            found[name] = f"{begin}{number:0{self._digits}}{word}"
            above.append(name)
        return found

    def _begin(self, name: str) -> str:
        begins = self._space.begins or (f"{self._kind}-",)
        return begins[bisect_left(self._space.kept, name)]

    def _is_below(self, name: str, other: str) -> bool:
        """Tell whether a name begins with another one and must be numbered below it."""
        if not name.startswith(other):
            return False
        if self._kind is Kind.PLACE:
            return other in self._parents and name[len(other)] < _AFTER_TYPES[-1]
        return bool(self._space.separator) and name[len(other)] < self._space.separator

    def _joint(self, name: str, other: str) -> str:
        if self._kind is Kind.PLACE:  # digits are between `#` and `@`
            return "!" if name[len(other)] < _AFTER_TYPES[0] else ""
        return "-"


def _prefixes(ordered: list[str], *, between: str) -> set[str]:
    """Return the names that others begin with and go on with a character before the last one."""
    found: set[str] = set()
    above: list[str] = []
    for name, _ in groupby(ordered):
        while above and not name.startswith(above[-1]):
            above.pop()
        found |= {other for other in above if name[len(other)] < between[-1]}
        above.append(name)
    return found
