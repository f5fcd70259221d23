"""Everything that must always hold, checked from scratch. Slow, and independent of the indices.

Tests check after every step of random histories; start-up checks once. A violation is our bug.
"""

from collections import Counter
from collections.abc import Iterator

from extender.cells.ranking import Ranking
from extender.cells.table import Table
from extender.cells.tree import Cell, ChainTree
from policy.errors import InvariantError


def check(table: Table) -> None:
    """Raise InvariantError with everything that does not hold."""
    problems = [
        problem
        for part in (_leaves, _sums, _claims, _free_lists, _safety, _rankings, _gangs)
        for problem in part(table)
    ]
    if problems:
        raise InvariantError("; ".join(problems))


def _leaves(table: Table) -> Iterator[str]:
    """No leaf is held or reserved twice, and gangs and leaves agree."""
    held: Counter[str] = Counter()
    for gang in table.gangs.values():
        for slot in gang.slots:
            for leaf in slot.leaves:
                held[leaf.address] += not slot.is_reserved
                owner = leaf.reserver if slot.is_reserved else leaf.holder
                if owner is not gang:
                    yield f"leaf {leaf.address} is in {gang.key}, but not the other way round"
    yield from (f"leaf {address} is held twice" for address, n in held.items() if n > 1)
    for tree in table.trees.values():
        for leaf in tree.root.leaves():
            for gang_of in (leaf.holder, leaf.reserver):
                if gang_of is not None and not any(leaf in slot.leaves for slot in gang_of.slots):
                    yield f"leaf {leaf.address} is of {gang_of.key}, but not the other way round"


def _sums(table: Table) -> Iterator[str]:
    """Idle, bad and claim counts are those of the leaves and cells below."""
    for tree in table.trees.values():
        for cell in _all(tree.root):
            leaves = list(cell.leaves())
            idle = sum(
                leaf.holder is None and leaf.reserver is None and not leaf.is_bad for leaf in leaves
            )
            if (cell.idle, cell.bad) != (idle, sum(leaf.is_bad for leaf in leaves)):
                yield f"cell {cell.address!r} counts {cell.idle} idle and {cell.bad} bad leaves"
            below = sum(other.claim is not None for other in _all(cell) if other is not cell)
            if cell is not tree.root and cell.claims_below != below:
                yield f"cell {cell.address} counts {cell.claims_below} claims, not {below}"


def _claims(table: Table) -> Iterator[str]:
    """Preassigned cells are mapped to cells of their level, do not overlap, and are used."""
    for vc in table.vcs.values():
        mapped = {claim.virtual.index for claim in vc.claims.values()}
        unmapped = {index for left in vc.unmapped.values() for index in left}
        if sorted((*mapped, *unmapped)) != list(range(len(vc.virtual))):
            yield f"VC {vc.name} has lost or doubled a preassigned cell"
        for claim in vc.claims.values():
            cell = claim.cell
            if cell.claim is not claim or cell.level != claim.virtual.level:
                yield f"{claim.address} and {cell.address} do not agree"
            if cell.claims_below or (cell.parent and cell.parent.enclosing_claim()):
                yield f"{claim.address} at {cell.address} overlaps another claim"
            users = Counter(
                gang.key
                for gang in table.gangs.values()
                for slot in gang.slots
                if slot.claim is claim
            )
            if dict(users) != claim.users or not (users or claim.virtual.pinned):
                yield f"{claim.address} counts users {claim.users}, not {dict(users)}"


def _free_lists(table: Table) -> Iterator[str]:
    """The free list holds the largest unclaimed cells, and nothing else."""
    for name, tree in table.trees.items():
        listed = {
            cell
            for level in range(1, tree.top_level + 1)
            for cell in table.supplies[name].free(level)
        }
        if listed != set(_largest_unclaimed(tree)):
            yield f"free list of chain {name} is wrong"
        unused = Counter(
            level
            for vc in table.vcs.values()
            for (chain, level), left in vc.unmapped.items()
            if chain == name
            for _ in left
        )
        for level, count in enumerate(table.supplies[name].unused):
            if unused[level] != count:
                yield f"chain {name} counts {count} unused cells of level {level}"


def _largest_unclaimed(tree: ChainTree) -> Iterator[Cell]:
    def walk(cell: Cell) -> Iterator[Cell]:
        if cell.claim is not None:
            return
        if not any(other.claim for other in _all(cell)):
            yield cell
            return
        for child in cell.children:
            yield from walk(child)

    for top in tree.root.children:
        yield from walk(top)


def _safety(table: Table) -> Iterator[str]:
    """VC safety: serve all unused promises from the largest down; nobody may come away empty."""
    for name, tree in table.trees.items():
        free = sorted(_largest_unclaimed(tree), key=lambda cell: (cell.leaf_count, cell.order))
        for level in range(tree.top_level, 0, -1):
            here = [cell for cell in free if cell.level == level]
            need = table.supplies[name].unused[level]
            if len(here) < need:
                yield f"VC safety: chain {name} has {len(here)} of {need} cells of level {level}"
            here.sort(key=lambda cell: (cell.leaf_count, cell.order))
            rest = [child for cell in here[need:] for child in cell.children]
            free = [cell for cell in free if cell.level < level] + rest


def _rankings(table: Table) -> Iterator[str]:
    """Rankings hold exactly the bins of their source, with their room."""
    for name, tree in table.trees.items():
        nodes = list(tree.root.at_level(tree.node_level))
        idle = {node: node.idle for node in nodes if node.idle}
        unclaimed = {node: room for node, room in idle.items() if node.is_unclaimed()}
        if table.idle[name].audit() != idle or table.unclaimed[name].audit() != unclaimed:
            yield f"rankings of chain {name} are wrong"
    for vc in table.vcs.values():
        wanted: dict[Ranking, dict[Cell, int]] = {}
        for claim in vc.claims.values():
            bins = claim.cell.at_level(min(claim.cell.level, claim.cell.chain.node_level))
            room = {bin_: bin_.idle for bin_ in bins if bin_.idle}
            wanted.setdefault(table.ranking_of(claim), {}).update(room)
        for ranking in (*vc.rankings.values(), *vc.pinned_rankings.values()):
            if ranking.audit() != wanted.get(ranking, {}):
                yield f"rankings of VC {vc.name} are wrong"


def _gangs(table: Table) -> Iterator[str]:
    """Gangs are not larger than they asked for; guaranteed ones lie in cells of their VC."""
    for gang in table.gangs.values():
        sizes = Counter(slot.size for slot in gang.slots)
        if not gang.is_foreign and sizes - Counter(gang.request.gang_leaf_counts):
            yield f"gang {gang.key} has more slots than members"
        for slot in gang.slots:
            if gang.is_guaranteed and slot.leaves and slot.claim is None:
                yield f"gang {gang.key} is guaranteed, but counts on no cell of its VC"
            if slot.claim is not None and (
                slot.claim.vc != gang.request.vc
                or not all(leaf.enclosing_claim() is slot.claim for leaf in slot.leaves)
            ):
                yield f"gang {gang.key} counts on {slot.claim.address}, where it is not"
        if not gang.slots or not (gang.has_members() or gang.asking):
            yield f"gang {gang.key} has nothing or nobody"


def _all(cell: Cell) -> Iterator[Cell]:
    yield cell
    for child in cell.children:
        yield from _all(child)
