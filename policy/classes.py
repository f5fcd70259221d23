"""Priority classes, ranked: which is higher, which are high, and their cell priorities.

The list of the Classes document is the only ranking. Without one (`NO_CLASSES`) no class is
checked, none is high, and none is lower than another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.errors import RequestError
from policy.submission import ClassName
from policy.wording import listing, quote

OPPORTUNISTIC: Final = -1
"""The cell priority of a class whose gangs borrow cells and can be preempted."""
MAX_CELL_PRIORITY: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """One class, by the name of its Kubernetes PriorityClass."""

    name: ClassName
    cell_priority: int
    high: bool = False


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes, highest first, and the default class."""

    entries: tuple[PriorityClass, ...]
    default: ClassName
    _ranks: Mapping[ClassName, int] = field(repr=False, compare=False)

    @classmethod
    def of(cls, entries: Iterable[PriorityClass], *, default: ClassName) -> "Classes":
        """Rank the entries by their order; the document's checks have been made."""
        listed = tuple(entries)
        return cls(listed, default, {entry.name: rank for rank, entry in enumerate(listed)})

    @property
    def names(self) -> tuple[ClassName, ...]:
        """All names, highest first."""
        return tuple(entry.name for entry in self.entries)

    def is_listed(self, name: ClassName) -> bool:
        """Whether the class is in the Classes document."""
        return name in self._ranks

    def rank(self, name: ClassName) -> int | None:
        """Return how many classes are higher; None for a class that is not listed."""
        return self._ranks.get(name)

    def is_lower(self, name: ClassName, than: ClassName) -> bool:
        """Whether `name` ranks below `than`; False if either is not listed."""
        rank, other = self._ranks.get(name), self._ranks.get(than)
        return rank is not None and other is not None and rank > other

    def compare(self, left: ClassName, right: ClassName) -> int | None:
        """Return 1, 0 or -1 if `left` is higher, equal or lower; None if either is not listed."""
        if left == right:
            return 0
        if not (self.is_listed(left) and self.is_listed(right)):
            return None
        return -1 if self.is_lower(left, right) else 1

    def is_high(self, name: ClassName) -> bool:
        """Whether leaf cells in this class count as `occupiedHigh`."""
        rank = self._ranks.get(name)
        return rank is not None and self.entries[rank].high

    def cell_priority(self, name: ClassName) -> int | None:
        """Return the cell priority of the class; None for a class that is not listed."""
        rank = self._ranks.get(name)
        return None if rank is None else self.entries[rank].cell_priority

    def resolve(self, name: str | None, *, path: str) -> ClassName:
        """Return the class of a pod that names this one; the default class if it names none.

        Raises RequestError at `path` for a class that is not listed. Without a Classes document
        every name passes.
        """
        if not self.entries or (name and name in self._ranks):
            return ClassName(name or "")
        if not name:
            return self.default
        known = listing(self.names)
        raise RequestError.at(
            path, f"class {quote(name)} is not in the Classes document; its classes are {known}"
        )


NO_CLASSES: Final = Classes.of((), default=ClassName(""))
"""What applies without a Classes document."""
