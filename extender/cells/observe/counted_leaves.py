"""On which leaves a running pod is counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cells.model import MemberRequest, Placement
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLeaves:
    """Where a pod is counted."""

    leaves: tuple[Cell, ...]
    """Of one node; nobody is bound to them, though they may be leased."""
    missing_leaves: int
    """Leaf cells of its node that it uses, and for which there is no leaf to count it on."""


def find_leaves(
    table: AllocationTable, request: MemberRequest, placement: Placement
) -> CountedLeaves:
    """The leaves that a pod names, and others of its node for what it does not name.

    Somebody else may be bound to a leaf that it names: then it is counted on another one. A leaf
    that the topology does not have is not counted: it was taken out on purpose. Without a topology
    nodes are as they are, and it is counted.
    """
    names = dict.fromkeys(placement.leaf_cells)
    nodes = _nodes(table, request, placement)
    unnamed = max(0, request.leaf_count - len(names))
    if not nodes:
        return CountedLeaves(
            leaves=(), missing_leaves=unnamed + (len(names) if table.is_open else 0)
        )
    if len(nodes) > 1:
        nodes.sort(key=lambda cell: _fitness(cell, names, unnamed), reverse=True)
    node = nodes[0]
    named = _named(node, names)
    found = [leaf for leaf in named if not is_bound(leaf)]
    missing_leaves = unnamed + len(named) - len(found)
    if table.is_open:
        missing_leaves += len(names) - len(named)
    if not missing_leaves:
        return CountedLeaves(leaves=tuple(found), missing_leaves=0)
    spare = [leaf for leaf in unheld_leaves(node) if leaf not in found]
    return CountedLeaves(
        leaves=(*found, *spare[:missing_leaves]), missing_leaves=max(0, missing_leaves - len(spare))
    )


def named_leaves(
    table: AllocationTable, request: MemberRequest, placement: Placement
) -> tuple[Cell, ...] | None:
    """The leaves that a placement names; None if one of them does not exist."""
    names = dict.fromkeys(placement.leaf_cells)
    for node in _nodes(table, request, placement):
        named = _named(node, names)
        if len(named) == len(names):
            return tuple(named)
    return None


def _nodes(table: AllocationTable, request: MemberRequest, placement: Placement) -> list[Cell]:
    """The cells of the pod's node: the chain it names first, then those of its leaf type."""
    return sorted(
        table.nodes(placement.node),
        key=lambda cell: (
            cell.chain.name != placement.chain,
            request.leaf_type is not None and cell.chain.leaf_type != request.leaf_type,
            cell.chain.name,
        ),
    )


def _fitness(node: Cell, names: dict[int, None], unnamed: int) -> tuple[int, bool]:
    return len(_named(node, names)), len(unheld_leaves(node)) >= unnamed


def _named(node: Cell, names: dict[int, None]) -> list[Cell]:
    """The leaves of a node that a placement names, in its order."""
    if not names:
        return []
    by_device = {leaf.device: leaf for leaf in node.leaves()}
    return [by_device[device] for device in names if device in by_device]


def unheld_leaves(node: Cell) -> Sequence[Cell]:
    """Leaves of a node that nobody holds, those that nobody has reserved either first."""
    unheld = [leaf for leaf in node.leaves() if leaf.holder is None]
    return sorted(unheld, key=lambda leaf: leaf.reserver is not None)


def is_bound(leaf: Cell) -> bool:
    """True if a bound member is on a leaf; what is only leased gives way to what runs."""
    holder = leaf.holder
    return holder is not None and any(slot.is_bound for slot in holder.slots if leaf in slot.leaves)
