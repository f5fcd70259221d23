"""The cluster as cells: which exist, and which of them each VC was promised. Immutable.

A *chain* is the sequence of cell types under one top-level type; level 1 is a leaf cell, one
device. Physical cells form trees of a chain's types. A VC is promised *preassigned* cells: a number
of cells of some level of a chain, any of them, or a *pinned* cell, one particular physical cell.

    chain "4-NODE":   4-NODE (level 4) → 2-NODE (3) → NODE (2, node level) → A100 (1)
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NewType

from policy.submission import LeafType, NodeName, VcName

ChainName = NewType("ChainName", str)
CellTypeName = NewType("CellTypeName", str)
DomainName = NewType("DomainName", str)
"""A group of nodes that an admin named: the name of an entry of `nodeTopology`."""
NO_DOMAIN: Final = DomainName("")
CellAddress = NewType("CellAddress", str)
"""Stable path of a physical cell, `rack0/node3/1`."""
PinnedCellId = NewType("PinnedCellId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of a chain."""

    level: int
    """Height, 1 = leaf."""
    cell_type: CellTypeName
    child_count: int
    """Children of each cell; 0 for a leaf. The most there may be, where cells are derived."""
    leaf_count: int
    is_node: bool
    """Its cells' last address part is the name of a Kubernetes node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalCell:
    """Hardware that exists."""

    address: CellAddress
    level: int
    children: tuple["PhysicalCell", ...] = ()
    node: NodeName | None = None
    """The node it is or lies in; None above node level."""
    device: int | None = None
    """Device index on the node, of a leaf."""
    pinned: PinnedCellId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """All top-level cells of one type."""

    name: ChainName
    leaf_type: LeafType
    levels: tuple[Level, ...]
    """From level 1 upwards: `levels[0]` is the leaf."""
    cells: tuple[PhysicalCell, ...]
    domain: DomainName = NO_DOMAIN
    """Empty where nodes are not divided into named domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A number of preassigned cells of a level of a chain."""

    chain: ChainName
    level: int
    count: int


@dataclass(frozen=True, slots=True)
class Backing:
    """How many cells of a level a VC was promised, and for how many of them there are cells."""

    leaf_type: LeafType
    level: str
    """The cell type of the level."""
    promised: int
    backed: int
    domain: DomainName = NO_DOMAIN

    @property
    def kind(self) -> "CellKind":
        """Which cells these are."""
        return self.leaf_type, self.level, self.domain

    @property
    def type_text(self) -> str:
        """The leaf type and, if there is one, the domain, for sentences."""
        return f"{self.leaf_type} in domain {self.domain}" if self.domain else self.leaf_type

    @property
    def is_whole(self) -> bool:
        """Whether there is a cell for each that was promised."""
        return self.backed >= self.promised


CellKind = tuple[LeafType, str, DomainName]
"""Leaf type, cell type of the level, and domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualCluster:
    """What one VC was promised, as far as there are cells for it."""

    name: VcName
    promises: tuple[Promise, ...] = ()
    pinned: tuple[PinnedCellId, ...] = ()
    shortfall: tuple[Backing, ...] = ()
    """The promises of the document for which there are too few cells, each level once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The whole cluster, with the proof of VC safety: all promises fit at once."""

    chains: Mapping[ChainName, Chain]
    vcs: Mapping[VcName, VirtualCluster]

    def backing(self, name: VcName) -> tuple[Backing, ...]:
        """Return what a VC was promised and what is backed: leaf type, level, domain; sorted.

        Pinned cells, which always exist, are left out.
        """
        vc = self.vcs[name]
        backed: Counter[CellKind] = Counter()
        for promise in vc.promises:
            chain = self.chains[promise.chain]
            level = chain.levels[promise.level - 1].cell_type
            backed[chain.leaf_type, level, chain.domain] += promise.count
        short = [one.kind for one in vc.shortfall]
        whole = [
            Backing(leaf_type, level, count, count, domain)
            for (leaf_type, level, domain), count in backed.items()
            if (leaf_type, level, domain) not in short
        ]
        return tuple(sorted([*whole, *vc.shortfall], key=lambda one: one.kind))
