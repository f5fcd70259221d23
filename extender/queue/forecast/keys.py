"""The keys under which run times are remembered, from the most specific to the most general."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_CHANGING: Final = re.compile(r"[0-9]+")
_SUFFIX: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""What the API server appends to a generated name."""
_MOST_LETTERS: Final = 200

Key = tuple[str, ...]


class KeyKind(StrEnum):
    """What the runs of one key have in common."""

    NAME = "user, name, image and size"
    USER = "user and size"
    VC_SIZE = "VC and size"
    VC = "VC"
    ALL = "all runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeys:
    """By what a run is compared with earlier ones; an empty text stands for what is not known."""

    user: str = ""
    name: str = ""
    """The pattern of its name (`name_pattern`)."""
    image: str = ""
    vc: str = ""
    leaf_cells: int = 1

    def ladder(self) -> list[tuple[KeyKind, Key]]:
        """Return the keys of the run, the most specific first."""
        size = str(size_class(self.leaf_cells))
        keys = [
            (KeyKind.NAME, (self.user, self.name, self.image, size), self.user and self.name),
            (KeyKind.USER, (self.user, size), self.user),
            (KeyKind.VC_SIZE, (self.vc, size), self.vc),
            (KeyKind.VC, (self.vc,), self.vc),
            (KeyKind.ALL, (), "all"),
        ]
        return [(kind, (kind.name, *key)) for kind, key, is_known in keys if is_known]


def size_class(leaf_cells: int) -> int:
    """Return the size class of a gang: the next power of two, at most 32."""
    return min(32, 1 << max(0, leaf_cells - 1).bit_length())


def name_pattern(name: str) -> str:
    """Return what the names of repeated runs have in common: numbers and random endings differ."""
    return _CHANGING.sub("#", _SUFFIX.sub("", name[:_MOST_LETTERS]))
