"""Pools: the cells that waiting gangs compete for."""

from typing import NamedTuple, Protocol

from policy.classes import OPPORTUNISTIC
from policy.submission import LeafType, VcName
from policy.topology import PinnedCellId


class Pool(NamedTuple):
    """The cells that gangs compete for: those of a VC, of a leaf type or any, or a pinned cell."""

    vc: VcName | None
    """None for opportunistic gangs: they use what any VC leaves idle."""
    leaf_type: LeafType | None
    pinned: PinnedCellId | None = None

    def describe(self) -> str:
        """Name the cells: `VC lab, leaf type A100`."""
        parts = ["any VC" if self.vc is None else f"VC {self.vc}"]
        if self.leaf_type:
            parts.append(f"leaf type {self.leaf_type}")
        if self.pinned:
            parts.append(f"pinned cell {self.pinned}")
        return ", ".join(parts)


class AsksForCells(Protocol):
    """What the pool of a gang depends on."""

    @property
    def vc(self) -> VcName:
        """Its VC."""

    @property
    def priority(self) -> int:
        """Its priority in the cell engine."""

    @property
    def leaf_type(self) -> LeafType | None:
        """The leaf type that it asks for."""

    @property
    def pinned(self) -> PinnedCellId | None:
        """The pinned cell that it must lie in."""


def pool_of(gang: AsksForCells) -> Pool:
    """Return the pool of a gang."""
    vc = None if gang.priority == OPPORTUNISTIC else gang.vc
    return Pool(vc, gang.leaf_type, gang.pinned)
