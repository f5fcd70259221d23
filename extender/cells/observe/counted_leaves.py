"""Chooses the leaves on which a running pod is counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.placement import Placement
from policy.submission import LeafType


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLeaves:
    """The leaves on which a pod is counted."""

    leaves: tuple[Cell, ...]
    """All of one node; no bound member has them, but they may be leased."""
    missing_leaves: int
    """Leaf cells of its node that it uses and for which no leaf is left."""


def find_leaves(
    table: AllocationTable, placement: Placement, *, size: int, leaf_type: LeafType | None
) -> CountedLeaves:
    """The leaves that a pod names, and other leaves of its node for those that it does not name.

    If another bound member has a leaf that the pod names, the pod is counted on another leaf. A
    leaf that the topology does not have is not counted, since an admin removed it on purpose.
    Without a topology it is counted.
    """
    names = dict.fromkeys(placement.leaf_cells)
    nodes = _nodes(table, placement, leaf_type)
    unnamed = max(0, size - len(names))
    if not nodes:
        missing = unnamed + (len(names) if table.is_open else 0)
        return CountedLeaves(leaves=(), missing_leaves=missing)
    if len(nodes) > 1:
        nodes.sort(
            key=lambda cell: (len(_named(cell, names)), len(unheld_leaves(cell)) >= unnamed),
            reverse=True,
        )
    node = nodes[0]
    named = _named(node, names)
    found = [leaf for leaf in named if not is_bound(leaf)]
    missing = unnamed + len(named) - len(found)
    if table.is_open:
        missing += len(names) - len(named)
    if not missing:
        return CountedLeaves(leaves=tuple(found), missing_leaves=0)
    spare = [leaf for leaf in unheld_leaves(node) if leaf not in found]
    left = max(0, missing - len(spare))
    return CountedLeaves(leaves=(*found, *spare[:missing]), missing_leaves=left)


def named_leaves(
    table: AllocationTable, placement: Placement, leaf_type: LeafType | None
) -> tuple[Cell, ...] | None:
    """The leaves that a placement names; None if the node or one of them does not exist."""
    names = dict.fromkeys(placement.leaf_cells)
    for node in _nodes(table, placement, leaf_type):
        named = _named(node, names)
        if len(named) == len(names):
            return tuple(named)
    return None


def _nodes(table: AllocationTable, placement: Placement, leaf_type: LeafType | None) -> list[Cell]:
    """The cells of the pod's node: in the chain that it names first, then of its leaf type."""
    return sorted(
        table.nodes(placement.node),
        key=lambda cell: (
            cell.chain.name != placement.chain,
            leaf_type is not None and cell.chain.leaf_type != leaf_type,
            cell.chain.name,
        ),
    )


def _named(node: Cell, names: dict[int, None]) -> list[Cell]:
    """The leaves of a node that a placement names, in the order of the placement."""
    if not names:
        return []
    by_device = {leaf.device: leaf for leaf in node.leaves()}
    return [by_device[device] for device in names if device in by_device]


def unheld_leaves(node: Cell) -> Sequence[Cell]:
    """Leaves of a node that no gang holds, those that no gang reserves first."""
    unheld = [leaf for leaf in node.leaves() if leaf.holder is None]
    return sorted(unheld, key=lambda leaf: leaf.reserver is not None)


def is_bound(leaf: Cell) -> bool:
    """True if a bound member has a leaf; a leaf that is only leased counts as available."""
    holder = leaf.holder
    return holder is not None and any(slot.is_bound for slot in holder.slots if leaf in slot.leaves)
