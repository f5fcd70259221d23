"""Promises compared with live nodes: kept as far as they fit, with a problem for the rest.

Nodes fail and leave, so promised cells may not exist any more. The engine must only see promises
that can all be kept. If a level has too few cells, each VC keeps its fair share: no VC loses a cell
while another keeps more cells than it does. The full promises apply again once the nodes are back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from policy.cluster.derived_cells import DerivedCells
from policy.cluster.document import BuiltCluster
from policy.cluster.promises import composition_shortage, promised_by_vc, to_problem
from policy.cluster.safety import Shortage
from policy.errors import Problem
from policy.submission import LeafType, VcName
from policy.topology import Chain, ChainName, Promise, Topology, VirtualCluster
from policy.wording import count_of, listing, quote


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
    keeper = _Keeper(cells, {name: VirtualCluster(name=name) for name in vcs})
    for wish in wishes:
        keeper.add(wish)
    for chain in cells.chains.values():
        keeper.cut(chain)
    return BuiltCluster(
        topology=Topology(chains=cells.chains, vcs=keeper.vcs),
        problems=tuple(keeper.problems),
        warnings=(*cells.warnings, *keeper.warnings),
    )


@dataclass(slots=True)
class _Keeper:
    cells: DerivedCells
    vcs: dict[VcName, VirtualCluster]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def add(self, wish: Wish) -> None:
        """Find the chain of a wish; the first, if there are several."""
        if wish.count == 0:
            return
        chains = list(self._chains(wish))
        what = f"{count_of(wish.count, 'cell')} promised of level {quote(wish.level)}"
        if not chains:
            message = f"{what}, but no node has leaf type {quote(wish.leaf_type)} and that level"
            self.problems.append(Problem(wish.path, message))
            return
        if len(chains) > 1:
            known = listing([quote(chain.name) for chain, _ in chains])
            message = f"{what} could be of any of the chains {known}; the first is taken"
            self.warnings.append(Problem(wish.path, message))
        chain, level = chains[0]
        vc = self.vcs[wish.vc]
        promise = Promise(chain=chain.name, level=level, count=wish.count)
        self.vcs[wish.vc] = replace(vc, promises=(*vc.promises, promise))

    def _chains(self, wish: Wish) -> Iterator[tuple[Chain, int]]:
        """Yield the chains that have the leaf type and the level, with the level's number."""
        for chain in self.cells.chains.values():
            rule = self.cells.rules[self.cells.rule_of[chain.name]]
            keys = [rule.leaf_resource, *reversed(rule.levels)]
            if chain.leaf_type == wish.leaf_type and wish.level in keys:
                yield chain, keys.index(wish.level) + 1

    def cut(self, chain: Chain) -> None:
        """Cut promises until they fit into the chain, from its highest level down."""
        composition = self.cells.compositions[chain.name]
        shortage = composition_shortage(composition, chain, self.vcs)
        while shortage is not None:
            self._cut_level(chain, shortage)
            shortage = composition_shortage(composition, chain, self.vcs)

    def _cut_level(self, chain: Chain, shortage: Shortage) -> None:
        promised = promised_by_vc(self.vcs, chain=chain.name, level=shortage.level)
        kept = fair_shares(promised, shortage.available)
        problem = to_problem(shortage, chain=chain, vcs=self.vcs)
        shares = listing([f"{quote(name)}: {count}" for name, count in kept.items()])
        self.problems.append(Problem(problem.path, f"{problem.message}; kept are {shares}"))
        for name, count in kept.items():
            promises = _limit(self.vcs[name], chain=chain.name, level=shortage.level, count=count)
            self.vcs[name] = replace(self.vcs[name], promises=tuple(promises))


def _limit(vc: VirtualCluster, *, chain: ChainName, level: int, count: int) -> Iterator[Promise]:
    """Yield a VC's promises with at most so many cells of a level, the first entries first."""
    for promise in vc.promises:
        if (promise.chain, promise.level) != (chain, level):
            yield promise
            continue
        kept = min(promise.count, count)
        count -= kept
        if kept:
            yield replace(promise, count=kept)


def fair_shares(promised: Mapping[VcName, int], available: int) -> dict[VcName, int]:
    """Divide the available cells so that the smallest share is as large as possible.

    A remainder goes to the VCs that were promised most.
    """
    shares: dict[VcName, int] = {}
    left = available
    # Smallest first: a VC that needs less than an even share leaves more to the others.
    for place, name in enumerate(sorted(promised, key=lambda name: (promised[name], name))):
        others = len(promised) - place
        shares[name] = min(promised[name], left // others)
        left -= shares[name]
    return {name: shares[name] for name in sorted(promised)}
