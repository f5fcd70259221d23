"""VCs: the preassigned cells that each was promised, and where they are mapped.

Virtual cells are not built as trees. A preassigned cell is mapped as a whole, and a virtual cell
below it is mapped to the cell at the same position below the physical one. Both subtrees have the
same shape, so this loses nothing, and a mapping is one reference.
"""

from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cells.state.ranking import Ranking
from extender.cells.state.supply import Supply
from extender.cells.state.tree import Cell, ChainTree
from policy.submission import GangKey, VcName
from policy.topology import Backing, ChainName, PinnedCellId, VirtualCluster


@dataclass(slots=True, eq=False)
class VirtualCell:
    """A preassigned cell of a VC, mapped or not."""

    index: int
    chain: ChainName
    level: int
    pinned: PinnedCellId | None = None


@dataclass(slots=True, eq=False)
class Claim:
    """A preassigned cell that is mapped to a physical cell."""

    vc: VcName
    virtual: VirtualCell
    cell: Cell
    users: dict[GangKey, int] = field(default_factory=dict)
    """Guaranteed gangs that count against it, with the number of their slots in it."""
    is_kept: bool = False
    """Whether it stays mapped for a gang that waits; only inside a what-if."""

    @property
    def is_needed(self) -> bool:
        """Whether it stays mapped: gangs use it, it is kept, or its cell is pinned."""
        return bool(self.users) or self.is_kept or self.virtual.pinned is not None

    @property
    def address(self) -> str:
        return f"{self.vc}/{self.virtual.index}"


_Rung = tuple[ChainName, int]


class Vc:
    """One virtual cluster: its promised cells, which of them are unused, and its mapped cells."""

    def __init__(self, name: VcName) -> None:
        self.name = name
        self.virtual: list[VirtualCell] = []
        self.unmapped: dict[_Rung, list[int]] = {}
        """Indices of virtual cells that are not mapped, lowest first; pinned cells always are."""
        self.promised: dict[_Rung, int] = {}
        """Number of promised cells, without pinned cells."""
        self.claims: dict[int, Claim] = {}
        """Mapped cells by the index of the virtual cell."""
        self.rankings: dict[ChainName, Ranking] = {}
        """Idle room in its mapped cells, without pinned cells."""
        self.pinned_rankings: dict[PinnedCellId, Ranking] = {}
        self.taken: dict[tuple[ChainName, PinnedCellId | None], int] = {}
        """Leaf cells held by slots that count against its cells: by chain, or in a pinned cell."""
        self.shortfall: tuple[Backing, ...] = ()
        """Promises of the document for which there are too few cells."""

    def count_taken(self, cell: VirtualCell, leaves: int) -> None:
        """Count leaf cells of a slot that counts against a cell; fewer than 0 if it is removed."""
        at = cell.chain, cell.pinned
        self.taken[at] = self.taken.get(at, 0) + leaves

    def left(self, chain: ChainName, pinned: PinnedCellId | None = None) -> int:
        """Leaf cells that were promised and that no guaranteed gang holds; some may be reserved."""
        ranking = self.rankings[chain] if pinned is None else self.pinned_rankings[pinned]
        return ranking.promised - self.taken.get((chain, pinned), 0)

    def unused(self, chain: ChainName, level: int) -> int:
        """Promised cells of a level that are not mapped."""
        return len(self.unmapped.get((chain, level), ()))

    def unused_levels(self, chain: ChainName) -> list[int]:
        """Levels at which the VC has promised cells that are not mapped, lowest first."""
        return sorted(rung[1] for rung, left in self.unmapped.items() if rung[0] == chain and left)

    def chains(self) -> list[ChainName]:
        """Chains in which it was promised cells other than pinned cells, sorted."""
        return sorted({cell.chain for cell in self.virtual if cell.pinned is None})

    def take(self, chain: ChainName, level: int) -> VirtualCell:
        """Take the unmapped virtual cell with the lowest index, to be mapped."""
        return self.virtual[self.unmapped[chain, level].pop(0)]

    def give_back(self, cell: VirtualCell) -> None:
        """Return a virtual cell that is no longer mapped."""
        insort(self.unmapped[cell.chain, cell.level], cell.index)


def build_vc(spec: VirtualCluster, pinned: dict[PinnedCellId, Cell]) -> Vc:
    """Number the promised cells as HiveD does: promises in document order, then pinned cells."""
    vc = Vc(spec.name)
    vc.shortfall = spec.shortfall
    for promise in spec.promises:
        left = vc.unmapped.setdefault((promise.chain, promise.level), [])
        rung = promise.chain, promise.level
        vc.promised[rung] = vc.promised.get(rung, 0) + promise.count
        for _ in range(promise.count):
            left.append(len(vc.virtual))
            vc.virtual.append(VirtualCell(len(vc.virtual), promise.chain, promise.level))
    for pinned_id in spec.pinned:
        cell = pinned[pinned_id]
        vc.virtual.append(VirtualCell(len(vc.virtual), cell.chain.name, cell.level, pinned_id))
    return vc


def renumber(vc: Vc, spec: VirtualCluster) -> list[Claim] | None:
    """Change what a VC was promised; mapped cells stay mapped. For VCs without pinned cells.

    A claim whose index now belongs to a cell of another chain or level, or to none, gets another
    index. Returns these claims. Returns None and changes nothing if more cells of a level are
    mapped than the new document promises.
    """
    fresh = build_vc(spec, {})
    renumbered = [claim for claim in vc.claims.values() if not _keeps_index(fresh, claim)]
    kept = {index: claim for index, claim in vc.claims.items() if _keeps_index(fresh, claim)}
    left = {rung: [i for i in all_ if i not in kept] for rung, all_ in fresh.unmapped.items()}
    for claim in renumbered:
        free = left.get((claim.virtual.chain, claim.virtual.level))
        if not free:
            return None
        kept[free.pop(0)] = claim
    vc.virtual, vc.promised, vc.unmapped = fresh.virtual, fresh.promised, left
    vc.shortfall = fresh.shortfall
    vc.claims = dict(sorted(kept.items()))
    for index, claim in vc.claims.items():
        claim.virtual = vc.virtual[index]
    return renumbered


def has_room_for(spec: VirtualCluster, claims: Sequence[Claim]) -> bool:
    """True if a document promises at least as many cells of each level as some claims use."""
    promised: Counter[_Rung] = Counter()
    for promise in spec.promises:
        promised[promise.chain, promise.level] += promise.count
    used = Counter(
        (claim.virtual.chain, claim.virtual.level)
        for claim in claims
        if claim.virtual.pinned is None
    )
    return all(count <= promised[rung] for rung, count in used.items())


def _keeps_index(vc: Vc, claim: Claim) -> bool:
    """True if the index of a claim means a cell of the same chain and level in the new VC."""
    mine = claim.virtual
    there = vc.virtual[mine.index] if mine.index < len(vc.virtual) else None
    return there is not None and (there.chain, there.level) == (mine.chain, mine.level)


def count_promises(
    vcs: Mapping[VcName, Vc],
    trees: Mapping[ChainName, ChainTree],
    supplies: Mapping[ChainName, Supply],
) -> None:
    """Set the promise counters of supplies and rankings after promises changed."""
    unused = {name: Counter[int]() for name in trees}
    for vc in vcs.values():
        for chain in [chain for chain in vc.rankings if chain not in vc.chains()]:
            del vc.rankings[chain]
        for ranking in vc.rankings.values():
            ranking.promised = 0
        for (chain, level), left in sorted(vc.unmapped.items()):
            unused[chain][level] += len(left)
            ranking = vc.rankings.setdefault(chain, Ranking(trees[chain]))
            ranking.promised += (
                vc.promised[chain, level] * trees[chain].levels[level - 1].leaf_count
            )
    for name, supply in supplies.items():
        supply.promise(unused[name])
