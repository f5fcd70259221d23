"""Gangs over several chains: the engine waits only where no way to divide them fits."""

from itertools import product
from random import Random

import pytest

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, Place, Reject
from extender.cells.state.tree import Cell
from policy.submission import NodeName
from policy.topology import ChainName, Topology
from tests.support.cells.brute_force import Question, fits
from tests.support.cells.builders import a_gang, an_engine, nodes_of
from tests.support.cells.random_clusters import a_random_cluster


def a_used_cluster(random: Random) -> tuple[Topology, Engine]:
    """A random cluster where a few gangs run."""
    topology = a_random_cluster(random)
    engine, nodes = an_engine(topology), nodes_of(topology)
    for number in range(random.randint(0, 8)):
        gang = a_gang(f"old{number}").of(*random.choices([1, 1, 2, 3], k=random.choice([1, 2])))
        vc, priority = random.choice(sorted(topology.vcs)), random.choice([-1, 0, 9])
        request = gang.in_vc(vc).at(priority).member()
        engine.apply(engine.plan(request, candidate_nodes=nodes), now=0)
    return topology, engine


def fits_divided(engine: Engine, request: MemberRequest, nodes: frozenset[NodeName]) -> bool:
    """True if some way to give each member a chain fits in all chains."""
    table, is_guaranteed = engine._table, request.priority >= 0
    chains = [c for c in table.trees if not is_guaranteed or c in table.vcs[request.vc].rankings]

    def part_fits(chain: ChainName, ways: tuple[ChainName, ...]) -> bool:
        sizes = [s for s, way in zip(request.gang_leaf_counts, ways, strict=True) if way == chain]
        question = Question(
            chain=chain,
            vc=request.vc if is_guaranteed else None,
            pinned=None,
            sizes=tuple(sorted(sizes, reverse=True)),
            first_nodes=nodes,
            nodes=nodes,
            usable=_is_unused,
            gone=frozenset(),
        )
        return not sizes or fits(table, question)

    all_ways = product(chains, repeat=len(request.gang_leaf_counts))
    return any(all(part_fits(chain, ways) for chain in chains) for ways in all_ways)


def _is_unused(leaf: Cell) -> bool:
    return leaf.holder is None and leaf.reserver is None


@pytest.mark.parametrize("part", range(4))
def test_a_divided_gang_is_placed_where_trying_everything_places_it(part: int) -> None:
    for seed in range(part, 160, 4):
        random = Random(seed)
        topology, engine = a_used_cluster(random)
        nodes = nodes_of(topology)
        for number in range(3):
            sizes = random.choices([1, 2, 2, 3, 4], k=random.choice([2, 3, 4]))
            gang = a_gang(f"new{number}").of(*sizes).in_vc(random.choice(sorted(topology.vcs)))
            request = gang.at(random.choice([-1, 5])).spanning().strict().member()
            decision = engine.plan(request, candidate_nodes=nodes)
            if not isinstance(decision, Reject):
                is_placed = isinstance(decision, Place)
                assert is_placed or not fits_divided(engine, request, frozenset(nodes))
