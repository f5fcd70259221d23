"""Bins ranked by the damage of clearing them, so that victims are found without visiting all gangs.

To *clear* a bin is to end gangs in it until it holds a member of a given size. An `EvictionRanking`
knows the damage of clearing each bin of one source: the mapped cells of a VC, or the unclaimed
cells. It catches up with changes when it is read, at a cost proportional to the changes.
"""

from bisect import bisect_left, insort
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from extender.cells.budget import KNOWN_EVICTION_RANKINGS
from extender.cells.fit.demand import Candidates
from extender.cells.preempt.damage import (
    NO_DAMAGE,
    Damage,
    DamageCache,
    breaks_budget,
    total_damage,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.tree import Cell
from policy.submission import VcName
from policy.topology import ChainName, PinnedCellId

Entry = tuple[Damage, int, int]
"""The damage of clearing a bin, the room that would be left over, the order of the bin."""

_Evictable = dict[PlacedGang, tuple[int, Damage]]
"""Gangs in a bin, with the number of leaves that ending each frees and the damage of ending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinSource:
    """Which bins are ranked, for which member size, and which gangs in them may be ended."""

    chain: ChainName
    size: int
    """Leaf cells of the member that a bin must hold."""
    level: int | None = None
    """Unclaimed cells of this level, at most node level; None: mapped cells of a VC."""
    vc: VcName | None = None
    pinned: PinnedCellId | None = None
    below: int = 0
    """Guaranteed gangs of the VC below this priority may be ended, and all opportunistic ones."""


class EvictionRanking:
    """The bins of one source, those with the least damage first."""

    def __init__(
        self,
        table: AllocationTable,
        source: BinSource,
        damages: DamageCache,
        *,
        nodes: Candidates | None = None,
    ) -> None:
        self._table = table
        self._source = source
        self.tree = table.trees[source.chain]
        self._damages = damages
        self._nodes = nodes
        """Only bins of these nodes; None: of all nodes."""
        self._bins: dict[Cell, list[Cell]] = {}
        """Bins by node."""
        self._entries: dict[Cell, tuple[Entry | None, int]] = {}
        """By bin: its entry, None if it cannot be cleared; and the members that it would hold."""
        self._ranked: list[Entry] = []
        self.capacity = 0
        """Members that all bins would hold if all gangs ended that may be ended."""
        self._read = 0

    @property
    def is_fresh(self) -> bool:
        """True if it can catch up quickly."""
        changes = self._table.changes.count_since(self._read)
        return changes is not None and changes <= _QUICKLY_READ

    def build(self) -> None:
        """Rank all bins in one step."""
        for _ in self.build_stepwise():
            pass

    def refresh(self) -> None:
        """Catch up with all changes since the last time."""
        changes = self._table.changes
        changed = changes.since(self._read)
        if changed is None:
            self.build()
            return
        self._read = changes.now
        if changed:
            self._damages.refresh()
            for node in self._nodes_of(changed):
                self._update(node)

    def cheapest(self) -> Iterator[tuple[Damage, Cell]]:
        """Bins with the damage of clearing each, the least damage first."""
        for entry in self._ranked:
            yield entry[0], self.tree.cells[entry[2]]

    def entry(self, bin_: Cell) -> Entry | None:
        """The entry of a bin; None if it cannot be cleared or does not belong to the source."""
        known = self._entries.get(bin_)
        return known[0] if known is not None else None

    def capacity_of(self, node: Cell) -> int:
        """The part of `capacity` that is on a node."""
        return sum(self._entries[bin_][1] for bin_ in self._bins.get(node, ()))

    def entries_of(self, node: Cell) -> int:
        """The number of bins on a node that can be cleared."""
        return sum(self._entries[bin_][0] is not None for bin_ in self._bins.get(node, ()))

    def victims(self, bin_: Cell) -> list[PlacedGang]:
        """The gangs that have to end to clear a bin, which must have an entry."""
        return self._victims(bin_, self._inside(bin_))

    def bins_in(self, cell: Cell) -> Iterator[Cell]:
        """The bins in a cell above the nodes."""
        for node in cell.at_level(self.tree.node_level):
            yield from self._bins.get(node, ())

    def __len__(self) -> int:
        return len(self._ranked)

    def audit(self) -> bool:
        """True if it equals a ranking that is built from scratch."""
        self.refresh()
        fresh = EvictionRanking(self._table, self._source, self._damages, nodes=self._nodes)
        fresh.build()
        is_same = self._ranked == fresh._ranked and self._entries == fresh._entries
        return is_same and self.capacity == fresh.capacity

    # -- catching up with changes

    def build_stepwise(self) -> Generator[None, None, None]:
        """Rank all bins, node by node; what changes meanwhile is caught up with afterwards."""
        self._read = self._table.changes.now
        self._bins.clear()
        self._entries.clear()
        self._ranked = []
        for node in list(self._all_nodes()):
            self._damages.refresh()
            bins = list(self._bins_at(node)) if self.tree.cells.get(node.order) is node else []
            if bins:
                self._bins[node] = bins
                self._entries.update((bin_, self._entry(bin_)) for bin_ in bins)
            yield
        self._ranked = sorted(entry for entry, _ in self._entries.values() if entry is not None)
        self.capacity = sum(count for _, count in self._entries.values())

    def _all_nodes(self) -> Iterable[Cell]:
        by_node = self.tree.by_node
        if self._nodes is not None:
            names = self._nodes if len(self._nodes) < len(by_node) else by_node
            return [by_node[name] for name in names if name in by_node and name in self._nodes]
        if self._source.vc is None:
            return by_node.values()
        claims = self._table.vcs[self._source.vc].claims.values()
        return self._nodes_of([claim.cell for claim in claims])

    def _nodes_of(self, changed: "Sequence[Cell | PlacedGang]") -> dict[Cell, None]:
        """The nodes of changed cells and gangs."""
        found: dict[Cell, None] = {}
        level, tree = self.tree.node_level, self.tree
        for item in dict.fromkeys(changed):
            if isinstance(item, PlacedGang):
                leaves = [slot.leaves[0] for slot in item.slots if slot.leaves]
                found.update((c.ancestor(level), None) for c in leaves if c.chain is tree)
            elif item.chain is tree and item.level <= level:
                found[item.ancestor(level)] = None
            elif item.chain is tree:
                found.update(dict.fromkeys(item.at_level(level)))
        return found

    def _update(self, node: Cell) -> None:
        """Compute the entries of all bins of a node again."""
        for bin_ in self._bins.pop(node, ()):
            entry, count = self._entries.pop(bin_)
            self.capacity -= count
            if entry is not None:
                del self._ranked[bisect_left(self._ranked, entry)]
        if self.tree.cells.get(node.order) is not node or (
            self._nodes is not None and node.node not in self._nodes
        ):
            return
        bins = list(self._bins_at(node))
        if bins:
            self._bins[node] = bins
        for bin_ in bins:
            entry, count = self._entries[bin_] = self._entry(bin_)
            self.capacity += count
            if entry is not None:
                insort(self._ranked, entry)

    # -- bins

    def _bins_at(self, node: Cell) -> Iterator[Cell]:
        """The bins of the source on a node."""
        source = self._source
        if source.level is not None:
            if node.enclosing_claim() is None:
                yield from (c for c in node.at_level(source.level) if c.is_unclaimed())
            return
        claim = node.enclosing_claim()
        if claim is not None:
            if claim.vc == source.vc and claim.virtual.pinned == source.pinned:
                yield node
        elif node.claims_below:
            yield from self._claimed_below(node)

    def _claimed_below(self, cell: Cell) -> Iterator[Cell]:
        for child in cell.children:
            claim = child.claim
            if claim is not None:
                if claim.vc == self._source.vc and claim.virtual.pinned == self._source.pinned:
                    yield child
            elif child.claims_below:
                yield from self._claimed_below(child)

    def _entry(self, bin_: Cell) -> tuple[Entry | None, int]:
        size = self._source.size
        if bin_.idle >= bin_.leaf_count:
            entry = (NO_DAMAGE, bin_.idle - size, bin_.order) if bin_.idle >= size else None
            return entry, bin_.idle // size
        inside = self._inside(bin_)
        room = bin_.idle + sum(count for count, _ in inside.values())
        if room < size:
            return None, 0
        victims = self._victims(bin_, inside)
        damage = total_damage([inside[gang][1] for gang in victims]) if victims else NO_DAMAGE
        return (damage, room - size, bin_.order), room // size

    def _inside(self, bin_: Cell) -> _Evictable:
        """The gangs in a bin that may be ended."""
        found: _Evictable = {}
        for leaf in bin_.leaves():
            gang = leaf.holder
            if gang is None or leaf.reserver is not None or leaf.is_bad:
                continue
            known = found.get(gang)
            if known is not None:
                found[gang] = (known[0] + 1, known[1])
            elif (damage := self._damage(gang)) is not None:
                found[gang] = (1, damage)
        return found

    def _damage(self, gang: PlacedGang) -> Damage | None:
        """The damage of ending a gang; None if it may not be ended."""
        if gang.is_guaranteed and not gang.is_borrower:
            source = self._source
            is_below = gang.request.vc == source.vc and gang.request.priority < source.below
            if not is_below or gang.is_spared:
                return None
        return self._damages.of(gang)

    def _victims(self, bin_: Cell, inside: _Evictable) -> list[PlacedGang]:
        missing = self._source.size - bin_.idle
        return few_victims(inside, missing) if missing > 0 else []


_QUICKLY_READ = 1_000
"""Changes with which a ranking catches up in a few milliseconds."""


class EvictionRankings:
    """The rankings that were used lately."""

    def __init__(self, table: AllocationTable) -> None:
        self._table = table
        self._damages = DamageCache(table.changes)
        self._known: dict[BinSource, EvictionRanking] = {}

    def of(self, source: BinSource) -> EvictionRanking:
        """The ranking of a source, up to date."""
        known = self._known.get(source)
        if known is None:
            known = EvictionRanking(self._table, source, self._damages)
            known.build()
        else:
            known.refresh()
        self._keep(source, known)
        return known

    def is_ready(self, source: BinSource) -> bool:
        """True if the ranking of a source needs no long time to be up to date."""
        known = self._known.get(source)
        return known is not None and known.is_fresh

    def build_stepwise(self, source: BinSource) -> Generator[None, None, None]:
        """Build the ranking of a source, node by node."""
        fresh = EvictionRanking(self._table, source, self._damages)
        yield from fresh.build_stepwise()
        self._keep(source, fresh)

    def _keep(self, source: BinSource, ranking: EvictionRanking) -> None:
        self._known.pop(source, None)
        if len(self._known) >= KNOWN_EVICTION_RANKINGS:
            del self._known[next(iter(self._known))]
        self._known[source] = ranking

    def only(self, source: BinSource, nodes: Candidates) -> EvictionRanking:
        """A ranking of the bins of some nodes; it is not kept."""
        ranking = EvictionRanking(self._table, source, self._damages, nodes=nodes)
        ranking.build()
        return ranking

    def audit(self) -> bool:
        """True if all rankings equal rankings that are built from scratch."""
        return self._damages.audit() and all([known.audit() for known in self._known.values()])


def few_victims(inside: _Evictable, missing: int) -> list[PlacedGang]:
    """Choose a few gangs of a bin that free the missing leaves; empty if all free too few.

    Gangs that break no budget are preferred, then one gang alone, the one with the least damage.
    """
    within = {gang: entry for gang, entry in inside.items() if not breaks_budget(entry[1])}
    if len(within) < len(inside) and (found := _few(within, missing)):
        return found
    return _few(inside, missing)


def _few(inside: _Evictable, missing: int) -> list[PlacedGang]:
    alone = [gang for gang, (count, _) in inside.items() if count >= missing]
    if alone:
        return [min(alone, key=lambda gang: inside[gang][1])]
    taken: list[PlacedGang] = []
    for gang in sorted(inside, key=lambda gang: _order(*inside[gang])):
        taken.append(gang)
        missing -= inside[gang][0]
        if missing <= 0:
            return taken
    return []


def _order(leaf_count: int, damage: Damage) -> tuple[bool, int, Damage]:
    """Gangs that break no budget first, then those that free the most leaves."""
    return breaks_budget(damage), -leaf_count, damage
