"""Alternatives: other forms in which the owner of a gang lets it run, in the order of preference.

An alternative says only what differs from what the pods ask for: `{leafType: V100}`, `{vc: shared}`
or `{minMembers: 2}`. What the pods ask for is always the first choice and is not listed, so
alternative 1 is the second choice. `policy.documents.alternatives_list` reads the list.

`members` and `leaf_cells` describe other forms, too, for suggestions to owners. Pods that exist
cannot take these forms: the devices that a pod requests never change.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from policy.submission import LeafType, VcName
from policy.wording import count_of, plain

MOST_ALTERNATIVES: Final = 8
"""Each attempt to plan a gang may try all of them."""
AS_ASKED: Final = "as asked"
_LONGEST_NOTE: Final = 1024
_NUMBER: Final = re.compile(r"([1-9][0-9]?) of ")


@dataclass(frozen=True, slots=True, kw_only=True)
class GangTerms:
    """What a gang asks for, as far as an alternative for pods that exist may differ."""

    vc: VcName
    leaf_type: LeafType | None = None
    gang_min: int | None = None
    """The number of members that is enough to start; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another form of a gang: what differs; None where nothing does."""

    leaf_type: LeafType | None = None
    vc: VcName | None = None
    min_members: int | None = None
    """The gang may start with as many members."""
    members: int | None = None
    """The gang has as many members; only in suggestions."""
    leaf_cells: int | None = None
    """Each member asks for as many leaf cells; only in suggestions."""

    def applied_to(self, asked: GangTerms) -> GangTerms:
        """Return what a gang asks for in this form."""
        return GangTerms(
            vc=self.vc or asked.vc,
            leaf_type=self.leaf_type or asked.leaf_type,
            gang_min=self.min_members or asked.gang_min,
        )

    def __str__(self) -> str:
        """Say what differs: `leaf type V100, VC shared`."""
        cells = "" if self.leaf_cells is None else count_of(self.leaf_cells, "leaf cell")
        parts = (
            f"leaf type {self.leaf_type}" if self.leaf_type else "",
            f"VC {self.vc}" if self.vc else "",
            f"at least {count_of(self.min_members, 'member')}" if self.min_members else "",
            count_of(self.members, "member") if self.members else "",
            f"{cells} for each member" if cells else "",
        )
        return ", ".join(filter(None, parts))


def all_terms(asked: GangTerms, alternatives: Iterable[Alternative]) -> tuple[GangTerms, ...]:
    """Return what a gang asks for, and then what it asks for by each alternative."""
    return (asked, *(one.applied_to(asked) for one in alternatives))


def name_form(number: int, alternatives: Sequence[Alternative]) -> str:
    """Name a form of a gang: `as asked`, or `alternative 1 of 2 (VC shared)`."""
    if not number:
        return AS_ASKED
    return f"alternative {number} of {len(alternatives)} ({alternatives[number - 1]})"


def format_used(number: int, alternatives: Sequence[Alternative], *, why: str) -> str:
    """Write by which alternative a gang is placed, and why: `1 of 2 (VC shared): as asked, …`."""
    name = name_form(number, alternatives).removeprefix("alternative ")
    return plain(f"{name}: {why}" if why else name, limit=_LONGEST_NOTE)


def read_used(text: str) -> int:
    """Return the number of the alternative that a gang is placed by; 0: as it asked."""
    found = _NUMBER.match(text)
    return int(found[1]) if found else 0
