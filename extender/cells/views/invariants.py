"""Checks everything that must always hold, from scratch: without using indexes and counters.

Tests check after every step of random histories. The service checks once when it starts, so the
checks visit each cell, slot and gang only a few times. A violation is a bug.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.ranking import Ranking
from extender.cells.state.registry import Registry
from extender.cells.state.tree import Cell, ChainTree
from extender.cells.state.vcs import Claim
from policy.cluster.safety import Bag, Forest
from policy.errors import InvariantError
from policy.submission import GangKey, PodUid, VcName
from policy.topology import ChainName, PinnedCellId

_SHOWN = 20


def check_stepwise(
    table: AllocationTable, registry: Registry, gang_of: Mapping[PodUid, GangKey]
) -> Generator[None, None, None]:
    """Check one kind of invariant in each step; then InvariantError if any is violated."""
    problems: list[str] = []
    for part in (_leaves, _sums, _claims, _free_lists, _safety, _rankings, _gangs, _preemptions):
        problems += part(table)
        yield
    problems += _members(table, gang_of)
    yield
    problems += _standings(table, registry)
    if problems:
        raise InvariantError("; ".join(problems[:_SHOWN]))


def _slots(table: AllocationTable) -> Iterator[tuple[PlacedGang, MemberSlot]]:
    for gang in table.gangs.values():
        for slot in gang.slots:
            yield gang, slot


def _leaves(table: AllocationTable) -> Iterator[str]:
    """No leaf is held or reserved twice; gangs and leaves agree."""
    held: dict[Cell, PlacedGang] = {}
    reserved: dict[Cell, PlacedGang] = {}
    for gang, slot in _slots(table):
        of = reserved if slot.is_reserved else held
        for leaf in slot.leaves:
            if leaf in of:
                yield f"leaf {leaf.address} is held or reserved twice"
            of[leaf] = gang
    for tree in table.trees.values():
        for leaf in tree.root.leaves():
            if leaf.holder is not held.pop(leaf, None):
                yield f"leaf {leaf.address} and its holder do not agree"
            if leaf.reserver is not reserved.pop(leaf, None):
                yield f"leaf {leaf.address} and its reserver do not agree"
    yield from (f"leaf {leaf.address} is of no chain" for leaf in (held | reserved))


def _sums(table: AllocationTable) -> Iterator[str]:
    """Idle, bad, leaf and claim counts of a cell are the sums over its descendants."""
    for tree in table.trees.values():
        yield from _sums_below(tree.root, tree)


def _sums_below(cell: Cell, tree: ChainTree) -> Iterator[str]:
    idle = bad = leaves = claims = 0
    if cell.is_leaf:
        leaves, bad = 1, int(cell.is_bad)
        idle = int(cell.holder is None and cell.reserver is None and not cell.is_bad)
    for child in cell.children:
        yield from _sums_below(child, tree)
        idle, bad, leaves = idle + child.idle, bad + child.bad, leaves + child.leaf_count
        claims += child.claims_below + (child.claim is not None)
    if (cell.idle, cell.bad, cell.leaf_count) != (idle, bad, leaves):
        yield f"cell {cell.address!r} counts {cell.idle} idle and {cell.bad} bad leaves"
    if cell is not tree.root and cell.claims_below != claims:
        yield f"cell {cell.address} counts {cell.claims_below} claims, not {claims}"


def _claims(table: AllocationTable) -> Iterator[str]:
    """Preassigned cells are mapped to cells of their level, do not overlap, and are used."""
    users: defaultdict[Claim, Counter[GangKey]] = defaultdict(Counter)
    taken: defaultdict[VcName, Counter[tuple[ChainName, PinnedCellId | None]]]
    taken = defaultdict(Counter)
    for gang, slot in _slots(table):
        if slot.claim is not None:
            users[slot.claim][gang.key] += 1
            virtual = slot.claim.virtual
            taken[slot.claim.vc][virtual.chain, virtual.pinned] += slot.held_count
    for vc in table.vcs.values():
        if +taken[vc.name] != +Counter(vc.taken):
            yield f"VC {vc.name} counts {vc.taken} taken leaf cells, not {dict(taken[vc.name])}"
        mapped = [claim.virtual.index for claim in vc.claims.values()]
        unmapped = [index for left in vc.unmapped.values() for index in left]
        if sorted(mapped + unmapped) != list(range(len(vc.virtual))):
            yield f"VC {vc.name} has lost or doubled a preassigned cell"
        for claim in vc.claims.values():
            yield from _claim(claim, users.pop(claim, Counter()))
    yield from (f"{claim.address} is used, but not mapped" for claim in users)


def _claim(claim: Claim, users: Counter[GangKey]) -> Iterator[str]:
    cell = claim.cell
    if cell.claim is not claim or cell.level != claim.virtual.level:
        yield f"{claim.address} and {cell.address} do not agree"
    if cell.claims_below or (cell.parent and cell.parent.enclosing_claim()):
        yield f"{claim.address} at {cell.address} overlaps another claim"
    if dict(users) != claim.users or not (users or claim.virtual.pinned):
        yield f"{claim.address} counts users {claim.users}, not {dict(users)}"


def _free_lists(table: AllocationTable) -> Iterator[str]:
    """The free list holds the largest unclaimed cells, and nothing else."""
    for name, tree in table.trees.items():
        supply = table.supplies[name]
        listed = [cell for level in range(1, tree.top_level + 1) for cell in supply.free(level)]
        if Counter(listed) != Counter(_largest_unclaimed(tree)):
            yield f"free list of chain {name} is wrong"
        for level, count in enumerate(supply.unused):
            if _unused(table, tree)[level] != count:
                yield f"chain {name} counts {count} unused cells of level {level}"


def _unused(table: AllocationTable, tree: ChainTree) -> Counter[int]:
    """Promised cells that are not mapped, of all VCs, by level."""
    found: Counter[int] = Counter()
    for vc in table.vcs.values():
        for (chain, level), left in vc.unmapped.items():
            if chain == tree.name:
                found[level] += len(left)
    return found


def _largest_unclaimed(tree: ChainTree) -> Iterator[Cell]:
    below = dict[Cell, bool]()

    def has_claim(cell: Cell) -> bool:
        below[cell] = any([has_claim(child) for child in cell.children]) or cell.claim is not None
        return below[cell]

    def walk(cell: Cell) -> Iterator[Cell]:
        if not below[cell]:
            yield cell
        elif cell.claim is None:
            for child in cell.children:
                yield from walk(child)

    for top in tree.root.children:
        has_claim(top)
        yield from walk(top)


def _safety(table: AllocationTable) -> Iterator[str]:
    """VC safety: unclaimed cells can meet all unused promises at the same time."""
    for name, tree in table.trees.items():
        unused = _unused(table, tree)
        promised = {level: count for level, count in unused.items() if count}
        if not promised:
            continue
        forest = Forest(promised)
        for cell in _largest_unclaimed(tree):
            forest.add(_bag(forest, cell), level=cell.level)
        short = forest.find_shortage(promised)
        if short is not None and short.is_proven:
            yield (
                f"VC safety: chain {name} has {short.available} of {short.promised} cells of "
                f"level {short.level}"
            )


def _bag(forest: Forest, cell: Cell) -> Bag:
    if cell.level < forest.levels[-1]:
        return ()
    return forest.bag(cell.level, [_bag(forest, child) for child in cell.children])


def _rankings(table: AllocationTable) -> Iterator[str]:
    """Rankings contain exactly the bins of their source, with their room."""
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


def _gangs(table: AllocationTable) -> Iterator[str]:
    """No gang has more slots than members; guaranteed gangs use cells of their VC."""
    for gang in table.gangs.values():
        sizes = Counter(slot.size for slot in gang.slots)
        surplus = sizes - Counter(gang.request.gang_leaf_counts)
        if any(slot.member is None and surplus[slot.size] for slot in gang.slots):
            yield f"gang {gang.key} has more slots than members"
        if not gang.slots or not (gang.has_members() or gang.waiting_members):
            yield f"gang {gang.key} has no slots or no members"
        if not gang.slots.audit() or gang.contested_leaves != _count_contested(gang):
            yield f"gang {gang.key} and the index of its slots do not agree"
    for gang, slot in _slots(table):
        if gang.is_guaranteed and slot.leaves and slot.claim is None and not slot.is_foreign:
            yield f"gang {gang.key} is guaranteed, but counts against no cell of its VC"
        if slot.claim is not None and not _counts_rightly(gang, slot, slot.claim):
            yield f"gang {gang.key} counts against {slot.claim.address}, but is not in it"


def _count_contested(gang: PlacedGang) -> int:
    held = (slot for slot in gang.slots if not slot.is_reserved)
    return sum(leaf.reserver is not None for slot in held for leaf in slot.leaves)


def _counts_rightly(gang: PlacedGang, slot: MemberSlot, claim: Claim) -> bool:
    if not gang.is_guaranteed or slot.is_foreign or claim.vc != gang.request.vc:
        return False
    return all(leaf.enclosing_claim() is claim for leaf in slot.leaves)


def _preemptions(table: AllocationTable) -> Iterator[str]:
    """A preempting gang may end all gangs whose leaves it has reserved."""
    for gang, slot in _slots(table):
        if slot.is_reserved and not (gang.is_guaranteed and gang.waiting_members):
            yield f"gang {gang.key} has reserved leaves for which no member waits"
        for leaf in slot.leaves if slot.is_reserved else ():
            if leaf.holder is not None and not leaf.holder.may_be_ended_for(gang.request):
                yield f"gang {gang.key} waits for {leaf.holder.key}, which it may not end"


def _members(table: AllocationTable, gang_of: Mapping[PodUid, GangKey]) -> Iterator[str]:
    """Every member belongs to one gang, and the index of members agrees."""
    found: Counter[tuple[PodUid, GangKey]] = Counter()
    for gang in table.gangs.values():
        members = [slot.member for slot in gang.slots if slot.member is not None]
        found.update((member, gang.key) for member in (*members, *gang.waiting_members))
    if found != Counter(gang_of.items()):
        yield "members and their gangs do not agree"
    uncounted = {slot: gang for gang, slot in _slots(table) if slot.missing_leaves}
    if uncounted != {
        slot: gang for there in table.incomplete_slots.values() for slot, gang in there.items()
    }:
        yield "slots with missing leaves and their index do not agree"


def _standings(table: AllocationTable, registry: Registry) -> Iterator[str]:
    """The registry lists every gang by its standing."""
    for gang in table.gangs.values():
        if not registry.has(gang):
            yield f"gang {gang.key} is registered at another standing"
    if len(registry) > len(table.gangs):
        yield "the registry has gangs that do not exist"
