"""The engine's question answered by trying everything: slow, obvious, independent of its indices.

It reads leaves, claims and promises, and nothing that the engine counts or ranks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from extender.cells.model import MemberRequest
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.submission import NodeName, VcName
from policy.topology import ChainName, PinnedCellId

Usable = Callable[[Cell], bool]


@dataclass(frozen=True)
class Question:
    """Does a gang fit into a chain?"""

    chain: ChainName
    vc: VcName | None
    pinned: PinnedCellId | None
    sizes: tuple[int, ...]
    """The member that asks first."""
    first_nodes: frozenset[NodeName]
    nodes: frozenset[NodeName] | None
    usable: Usable
    gone: frozenset[object]
    """Gangs that are thought away: what is mapped only for them is not."""


def fits(table: AllocationTable, question: Question) -> bool:
    """True if any mapping of unused preassigned cells holds the gang and keeps all promises."""
    tree = table.trees[question.chain]
    if question.vc is None:
        return _pack(list(tree.root.at_level(tree.node_level)), question)
    claims = [
        (claim.vc, claim.cell, claim.virtual.pinned)
        for vc in table.vcs.values()
        for claim in vc.claims.values()
        if claim.cell.chain is tree and (claim.virtual.pinned or set(claim.users) - question.gone)
    ]
    own = [c for v, c, pin in claims if v == question.vc and pin == question.pinned]
    if question.pinned is not None:
        return _pack(_bins(own), question)
    unused = _unused(table, question, [(v, c) for v, c, pin in claims if pin is None])
    return _try(tree.root, [c for _, c, _ in claims], own, unused, question, set())


def _unused(
    table: AllocationTable, question: Question, claims: Sequence[tuple[VcName, Cell]]
) -> dict[VcName, list[int]]:
    """Levels of the preassigned cells of each VC that are not mapped."""
    found: dict[VcName, list[int]] = {}
    for name, vc in table.vcs.items():
        levels = [
            cell.level
            for cell in vc.virtual
            if cell.pinned is None and cell.chain == question.chain
        ]
        for owner, cell in claims:
            if owner == name:
                levels.remove(cell.level)
        found[name] = levels
    return found


def _try(
    root: Cell,
    taken: list[Cell],
    own: list[Cell],
    unused: dict[VcName, list[int]],
    question: Question,
    seen: set[frozenset[Cell]],
) -> bool:
    assert question.vc is not None
    if frozenset(own) in seen:  # the same cells, mapped in another order
        return False
    seen.add(frozenset(own))
    if not is_safe(root, taken, [level for levels in unused.values() for level in levels]):
        return False
    if _pack(_bins(own), question):
        return True
    mine = unused[question.vc]
    for level in sorted(set(mine)):
        rest = list(mine)
        rest.remove(level)
        for cell in root.at_level(level):
            if not any(_overlap(cell, other) for other in taken) and _try(
                root, [*taken, cell], [*own, cell], {**unused, question.vc: rest}, question, seen
            ):
                return True
    return False


def is_safe(root: Cell, taken: list[Cell], promised: Sequence[int]) -> bool:
    """True if disjoint untaken cells of all promised levels exist: tries all of them."""
    if not promised:
        return True
    level = max(promised)
    rest = list(promised)
    rest.remove(level)
    tried: list[object] = []
    for cell in root.at_level(level):
        if any(_overlap(cell, other) for other in taken):
            continue
        shape = [_shape(above, cell, taken) for above in cell.upwards()]
        if shape in tried:
            continue
        tried.append(shape)
        if is_safe(root, [*taken, cell], rest):
            return True
    return False


def _shape(cell: Cell, marked: Cell, taken: list[Cell]) -> object:
    """What is below a cell, as far as it is not taken, without addresses."""
    if cell in taken:
        return "taken"
    inside = sorted(repr(_shape(child, marked, taken)) for child in cell.children)
    return (cell is marked, tuple(inside))


def _overlap(one: Cell, other: Cell) -> bool:
    return one in list(other.upwards()) or other in list(one.upwards())


def _bins(claims: Sequence[Cell]) -> list[Cell]:
    return [
        bin_ for cell in claims for bin_ in cell.at_level(min(cell.level, cell.chain.node_level))
    ]


def _pack(bins: Sequence[Cell], question: Question) -> bool:
    rooms = {
        bin_: sum(question.usable(leaf) and not leaf.is_bad for leaf in bin_.leaves())
        for bin_ in bins
    }

    def place(index: int) -> bool:
        if index == len(question.sizes):
            return True
        size = question.sizes[index]
        allowed = question.first_nodes if index == 0 else question.nodes
        tried = set()
        for bin_, room in list(rooms.items()):
            if room < size or (allowed is not None and bin_.node not in allowed):
                continue
            key = (room, question.nodes is None or bin_.node in question.nodes)
            if key in tried:
                continue
            tried.add(key)
            rooms[bin_] -= size
            if place(index + 1):
                return True
            rooms[bin_] += size
        return False

    return place(0)


def least_of(request: MemberRequest) -> MemberRequest:
    """The members of an incremental gang that are enough: the smallest beside this one."""
    others = sorted(request.gang_leaf_counts)
    others.remove(request.leaf_count)
    count = request.gang_min or len(request.gang_leaf_counts)
    return replace(request, gang_leaf_counts=(request.leaf_count, *others[: count - 1]))
