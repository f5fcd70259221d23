"""Promises compared with live nodes: kept as far as they fit, with a problem for the rest.

Nodes fail and leave, so promised cells may not exist any more. The engine must only see promises
that can all be kept. If a chain has too few cells, `fair_cut` says what each VC keeps. The full
promises apply again once the nodes are back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.cluster.derived_cells import DerivedCells
from policy.cluster.document import BuiltCluster
from policy.cluster.fair_cut import cut_fairly
from policy.cluster.safety import Composition, plant
from policy.errors import Problem
from policy.submission import LeafType, VcName
from policy.topology import Backing, Chain, Promise, Topology, VirtualCluster
from policy.wording import count_of, listing, quote

_STEPS_OF_A_CUT: Final = 500
"""Choices tried for each of some dozens of questions while promises are cut."""

_FAIR = "VCs share the leaf cells equally, as far as whole cells allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One entry of a VC: cells by leaf type and label key."""

    vc: VcName
    leaf_type: LeafType
    level: str
    count: int
    path: str


def keep_promises(
    cells: DerivedCells, wishes: Iterable[Wish], *, vcs: Iterable[VcName]
) -> BuiltCluster:
    """Promise what the document asks for, as far as the cells allow."""
    keeper = _Keeper(cells)
    for wish in wishes:
        keeper.add(wish)
    for chain in cells.chains.values():
        keeper.keep(chain)
    return BuiltCluster(
        topology=Topology(
            chains=cells.chains, vcs={name: keeper.virtual_cluster(name) for name in vcs}
        ),
        problems=tuple(keeper.problems()),
        warnings=(*cells.warnings, *keeper.warnings),
    )


@dataclass(slots=True)
class _Entry:
    """A wish, the level of a chain that it means, and how many cells it gets."""

    wish: Wish
    chain: Chain | None
    """None if no node has its leaf type and level."""
    level: int = 0
    backed: int = 0

    @property
    def level_name(self) -> str:
        return self.chain.levels[self.level - 1].cell_type if self.chain else self.wish.level


@dataclass(slots=True)
class _Keeper:
    cells: DerivedCells
    entries: list[_Entry] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def add(self, wish: Wish) -> None:
        """Find the chain of a wish; the first, if there are several."""
        if wish.count == 0:
            return
        chains = list(self._chains(wish))
        if len(chains) > 1:
            known = listing([quote(chain.name) for chain, _ in chains])
            what = f"{count_of(wish.count, 'cell')} promised of level {quote(wish.level)}"
            message = f"{what} could be of any of the chains {known}; the first is taken"
            self.warnings.append(Problem(wish.path, message))
        chain, level = chains[0] if chains else (None, 0)
        self.entries.append(_Entry(wish, chain, level))

    def _chains(self, wish: Wish) -> Iterator[tuple[Chain, int]]:
        """Yield the chains that have the leaf type and the level, with the level's number."""
        for chain in self.cells.chains.values():
            rule = self.cells.rules[self.cells.rule_of[chain.name]]
            keys = [rule.leaf_resource, *reversed(rule.levels)]
            if chain.leaf_type == wish.leaf_type and wish.level in keys:
                yield chain, keys.index(wish.level) + 1

    def keep(self, chain: Chain) -> None:
        """Give the entries of a chain their cells: all, or a fair part."""
        entries = [entry for entry in self.entries if entry.chain is chain]
        promised: dict[VcName, Counter[int]] = {}
        for entry in entries:
            promised.setdefault(entry.wish.vc, Counter())[entry.level] += entry.wish.count
        kept = _kept(chain, self.cells.compositions[chain.name], promised)
        for entry in entries:
            # Of equal entries of a VC, the first come first.
            entry.backed = min(entry.wish.count, kept[entry.wish.vc][entry.level])
            kept[entry.wish.vc][entry.level] -= entry.backed

    def virtual_cluster(self, name: VcName) -> VirtualCluster:
        """Return what a VC keeps, and what it lacks."""
        entries = [entry for entry in self.entries if entry.wish.vc == name]
        return VirtualCluster(
            name=name,
            promises=tuple(
                Promise(chain=entry.chain.name, level=entry.level, count=entry.backed)
                for entry in entries
                if entry.chain is not None and entry.backed
            ),
            shortfall=tuple(_shortfall(entries)),
        )

    def problems(self) -> Iterator[Problem]:
        """Yield a problem for each entry that does not get all its cells."""
        for entry in self.entries:
            wish = entry.wish
            what = f"{count_of(wish.count, 'cell')} promised of level {quote(wish.level)}"
            of_type = f"leaf type {quote(wish.leaf_type)}"
            if entry.chain is None:
                yield Problem(wish.path, f"{what}, but no node has {of_type} and that level")
            elif entry.backed < wish.count:
                cut = f"the nodes of {of_type} back only {entry.backed} of them"
                yield Problem(wish.path, f"{what}, but {cut}: {_FAIR}")


def _kept(
    chain: Chain, composition: Composition, promised: Mapping[VcName, Counter[int]]
) -> dict[VcName, Counter[int]]:
    """Return how many cells of each level every VC keeps."""
    total: Counter[int] = Counter()
    for of_vc in promised.values():
        total.update(of_vc)
    if not total:
        return {}
    forest = plant(composition, top_level=len(chain.levels), levels=total)
    if forest.find_shortage(total) is None:
        return {name: Counter(of_vc) for name, of_vc in promised.items()}
    return cut_fairly(
        promised,
        sizes={level.level: level.leaf_count for level in chain.levels},
        fits=lambda cells: (
            forest.find_shortage(
                {level: cells.get(level, 0) for level in forest.levels}, max_steps=_STEPS_OF_A_CUT
            )
            is None
        ),
    )


def _shortfall(entries: Sequence[_Entry]) -> Iterator[Backing]:
    """Yield the levels of a VC that lack cells."""
    promised: Counter[tuple[LeafType, str]] = Counter()
    backed: Counter[tuple[LeafType, str]] = Counter()
    for entry in entries:
        key = entry.wish.leaf_type, entry.level_name
        promised[key] += entry.wish.count
        backed[key] += entry.backed
    for (leaf_type, level), count in sorted(promised.items()):
        if backed[leaf_type, level] < count:
            yield Backing(leaf_type, level, count, backed[leaf_type, level])
