"""Adds up what all VCs were promised, for the supply and the rankings."""

from collections import Counter
from collections.abc import Mapping

from extender.cells.state.ranking import Ranking
from extender.cells.state.supply import Supply
from extender.cells.state.tree import ChainTree
from extender.cells.state.vcs import Vc
from policy.submission import VcName
from policy.topology import ChainName


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
