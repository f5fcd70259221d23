"""The cluster as cells: which exist, and which of them each VC was promised. Immutable.

A *chain* is the sequence of cell types under one top-level type; level 1 is a leaf cell, one
device. Physical cells form trees of a chain's types. A VC is promised *preassigned* cells: a number
of cells of some level of a chain, any of them, or a *pinned* cell, one particular physical cell.

    chain "4-NODE":   4-NODE (level 4) → 2-NODE (3) → NODE (2, node level) → A100 (1)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from policy.submission import LeafType, NodeName, VcName

ChainName = NewType("ChainName", str)
CellTypeName = NewType("CellTypeName", str)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A number of preassigned cells of a level of a chain."""

    chain: ChainName
    level: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualCluster:
    """What one VC was promised."""

    name: VcName
    promises: tuple[Promise, ...] = ()
    pinned: tuple[PinnedCellId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The whole cluster, with the proof of VC safety: all promises fit at once."""

    chains: Mapping[ChainName, Chain]
    vcs: Mapping[VcName, VirtualCluster]
