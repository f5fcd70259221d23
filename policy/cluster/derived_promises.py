"""Promises compared with live nodes: kept as far as they fit, with a problem for the rest.

Nodes fail and leave, so promised cells may not exist any more. The engine must only see promises
that can all be kept. If a chain has too few cells, `fair_cut` says what each VC keeps. The full
promises apply again once the nodes are back.

A promise that does not say which of several entries of `nodeTopology` it means is refused at apply.
If it becomes ambiguous later, because nodes of its leaf type join under another entry, its cells
are spread: each chain gives what it has left, and the smallest promises are served first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from policy.cluster.derived_cells import DerivedCells, NodeTopologyEntry
from policy.cluster.document import BuiltCluster
from policy.cluster.fair_cut import cut_fairly_stepwise
from policy.cluster.safety import Composition, Forest, Stepwise, plant
from policy.errors import Problem
from policy.submission import LeafType, VcName
from policy.topology import (
    NO_DOMAIN,
    Backing,
    CellKind,
    Chain,
    DomainName,
    Promise,
    Topology,
    VirtualCluster,
)
from policy.wording import count_of, listing, quote

_STEPS_OF_A_CUT: Final = 500
"""Choices tried for each of some dozens of questions while promises are cut or spread."""

_FAIR = "VCs share the leaf cells equally, as far as whole cells allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One entry of a VC: cells by leaf type, label key and domain."""

    vc: VcName
    leaf_type: LeafType
    level: str
    count: int
    path: str
    domain: DomainName = NO_DOMAIN
    """Empty if any entry of `nodeTopology` may be meant."""

    @property
    def of_type(self) -> str:
        """The leaf type and the domain, in words."""
        of_domain = f" in domain {quote(self.domain)}" if self.domain else ""
        return f"of leaf type {quote(self.leaf_type)}{of_domain}"

    def may_be_of(self, rule: NodeTopologyEntry) -> bool:
        """Whether its cells can be those of an entry of `nodeTopology`."""
        return self.level in rule.promised_levels and self.domain in ("", rule.name)


def keep_promises_stepwise(
    cells: DerivedCells, wishes: Iterable[Wish], *, vcs: Iterable[VcName]
) -> Stepwise[BuiltCluster]:
    """Promise what the document asks for, as far as the cells allow."""
    keeper = _Keeper(cells)
    yield from keeper.add(list(wishes))
    for chain in cells.chains.values():
        yield from keeper.keep(chain)
    kept = keeper.virtual_clusters(vcs)
    yield
    return BuiltCluster(
        topology=Topology(chains=cells.chains, vcs=kept),
        problems=tuple(keeper.problems()),
        warnings=(*cells.warnings, *keeper.warnings),
    )


@dataclass(slots=True)
class _Entry:
    """A promise or a part of it, the level of a chain that it means, and how many cells it gets."""

    wish: Wish
    chain: Chain
    level: int
    count: int
    backed: int = 0


@dataclass(slots=True)
class _Room:
    """What a chain can give beside that which it was promised for."""

    chain: Chain
    promised: Counter[int]
    """Cells by level; all levels are there."""
    forest: Forest

    def take(self, level: int, *, most: int) -> Stepwise[int]:
        """Take as many more cells of a level as the chain can give, up to a number."""
        low, high = (most, most + 1) if (yield from self._fits(level, most)) else (0, most)
        while high - low > 1:
            middle = (low + high) // 2
            does_fit = yield from self._fits(level, middle)
            low, high = (middle, high) if does_fit else (low, middle)
        self.promised[level] += low
        return low

    def _fits(self, level: int, more: int) -> Stepwise[bool]:
        yield
        wanted = {**self.promised, level: self.promised[level] + more}
        return (yield from _fits(self.forest, wanted))


@dataclass(slots=True)
class _Keeper:
    cells: DerivedCells
    wishes: list[Wish] = field(default_factory=list)
    entries: list[_Entry] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    backed: Counter[str] = field(default_factory=Counter)
    """Cells by the path of the promise."""

    def add(self, wishes: Sequence[Wish]) -> Stepwise[None]:
        """Find the chain of each promise, and divide those that could be of several chains."""
        self.wishes = [wish for wish in wishes if wish.count]
        ambiguous: list[tuple[int, int, list[tuple[Chain, int]]]] = []
        for place, wish in enumerate(self.wishes):
            chains = list(self._chains(wish))
            if len(chains) == 1:
                self.entries.append(_Entry(wish, *chains[0], wish.count))
            elif chains:
                chain, level = chains[0]
                ambiguous.append((wish.count * chain.levels[level - 1].leaf_count, place, chains))
                self._warn(wish, chains)
            yield
        several = {chain.name: chain for *_, chains in ambiguous for chain, _ in chains}
        rooms = {name: self._room(chain) for name, chain in several.items()}
        for _, place, chains in sorted(ambiguous, key=lambda one: one[:2]):
            yield from self._spread(
                self.wishes[place], [(rooms[chain.name], level) for chain, level in chains]
            )
        order = {wish.path: place for place, wish in enumerate(self.wishes)}
        self.entries.sort(key=lambda entry: order[entry.wish.path])

    def _chains(self, wish: Wish) -> Iterator[tuple[Chain, int]]:
        """Yield the chains that have the leaf type and the level, with the level's number."""
        for chain in self.cells.chains.values():
            rule = self.cells.rules[self.cells.rule_of[chain.name]]
            if chain.leaf_type == wish.leaf_type and wish.may_be_of(rule):
                yield chain, rule.promised_levels.index(wish.level) + 1

    def _warn(self, wish: Wish, chains: Sequence[tuple[Chain, int]]) -> None:
        known = listing([quote(chain.name) for chain, _ in chains])
        what = f"{_cells(wish)} could be of any of the chains {known}"
        self.warnings.append(Problem(wish.path, f"{what}; they are spread over these"))

    def _room(self, chain: Chain) -> "_Room":
        promised = Counter({level.level: 0 for level in chain.levels})
        for entry in self.entries:
            if entry.chain is chain:
                promised[entry.level] += entry.count
        cells = self.cells.compositions[chain.name]
        forest = plant(cells, top_level=len(chain.levels), levels=promised)
        return _Room(chain, promised, forest)

    def _spread(self, wish: Wish, rooms: Sequence[tuple["_Room", int]]) -> Stepwise[None]:
        """Take what each chain has left; what no chain has is not backed."""
        left = wish.count
        for room, level in rooms:
            taken = yield from room.take(level, most=left)
            if taken:
                self.entries.append(_Entry(wish, room.chain, level, taken))
            left -= taken

    def keep(self, chain: Chain) -> Stepwise[None]:
        """Give the entries of a chain their cells: all, or a fair part."""
        entries = [entry for entry in self.entries if entry.chain is chain]
        promised: dict[VcName, Counter[int]] = {}
        for entry in entries:
            promised.setdefault(entry.wish.vc, Counter())[entry.level] += entry.count
        yield
        kept = yield from _kept(chain, self.cells.compositions[chain.name], promised)
        for entry in entries:
            # Of equal entries of a VC, the first come first.
            entry.backed = min(entry.count, kept[entry.wish.vc][entry.level])
            kept[entry.wish.vc][entry.level] -= entry.backed
            self.backed[entry.wish.path] += entry.backed

    def virtual_clusters(self, names: Iterable[VcName]) -> dict[VcName, VirtualCluster]:
        """Return what each VC keeps, and what it lacks."""
        promises: dict[VcName, list[Promise]] = {}
        wishes: dict[VcName, list[Wish]] = {}
        for entry in self.entries:
            if entry.backed:
                kept = Promise(chain=entry.chain.name, level=entry.level, count=entry.backed)
                promises.setdefault(entry.wish.vc, []).append(kept)
        for wish in self.wishes:
            wishes.setdefault(wish.vc, []).append(wish)
        return {
            name: VirtualCluster(
                name=name,
                promises=tuple(promises.get(name, ())),
                shortfall=tuple(self._shortfall(wishes.get(name, ()))),
            )
            for name in names
        }

    def _shortfall(self, wishes: Sequence[Wish]) -> Iterator[Backing]:
        """Yield the levels of a VC that lack cells."""
        promised: Counter[CellKind] = Counter()
        backed: Counter[CellKind] = Counter()
        for wish in wishes:
            key = wish.leaf_type, self._level_name(wish), wish.domain
            promised[key] += wish.count
            backed[key] += self.backed[wish.path]
        for (leaf_type, level, domain), count in sorted(promised.items()):
            kept = backed[leaf_type, level, domain]
            if kept < count:
                yield Backing(leaf_type, level, count, kept, domain)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem for each promise that does not get all its cells."""
        for wish in self.wishes:
            backed = self.backed[wish.path]
            if not any(self._chains(wish)):
                of_type = wish.of_type.removeprefix("of ")
                yield Problem(
                    wish.path, f"{_cells(wish)}, but no node has {of_type} and that level"
                )
            elif backed < wish.count:
                cut = f"the nodes {wish.of_type} back only {backed} of them"
                yield Problem(wish.path, f"{_cells(wish)}, but {cut}: {_FAIR}")

    def _level_name(self, wish: Wish) -> str:
        chain, level = next(self._chains(wish), (None, 0))
        return chain.levels[level - 1].cell_type if chain else wish.level


def _cells(wish: Wish) -> str:
    return f"{count_of(wish.count, 'cell')} promised of level {quote(wish.level)}"


def _kept(
    chain: Chain, composition: Composition, promised: Mapping[VcName, Counter[int]]
) -> Stepwise[dict[VcName, Counter[int]]]:
    """Return how many cells of each level every VC keeps."""
    total: Counter[int] = Counter()
    for of_vc in promised.values():
        total.update(of_vc)
    if not total:
        return {}
    forest = plant(composition, top_level=len(chain.levels), levels=total)
    yield
    if (yield from forest.find_shortage_stepwise(total)) is None:
        return {name: Counter(of_vc) for name, of_vc in promised.items()}
    return (
        yield from cut_fairly_stepwise(
            promised,
            sizes={level.level: level.leaf_count for level in chain.levels},
            fits=partial(_fits, forest),
        )
    )


def _fits(forest: Forest, cells: Mapping[int, int]) -> Stepwise[bool]:
    wanted = {level: cells.get(level, 0) for level in forest.levels}
    shortage = yield from forest.find_shortage_stepwise(wanted, max_steps=_STEPS_OF_A_CUT)
    return shortage is None
