"""What a ranking says of some nodes is what a ranking of these nodes alone says."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.cells.engine import Engine
from extender.cells.fit.demand import AllowedNodes
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Place
from extender.cells.preempt.evictions_within import EvictionsWithin
from policy.submission import NodeName
from tests.support.cells.builders import a_gang, an_engine, nodes_of
from tests.support.cells.engine_calls import check
from tests.support.cells.random_clusters import a_random_cluster


@given(st.integers(0, 2**32))
def test_after_each_step_a_part_of_a_ranking_equals_a_ranking_of_the_part(seed: int) -> None:
    random = Random(seed)
    topology = a_random_cluster(random)
    engine, nodes = an_engine(topology), nodes_of(topology)
    placed: list[MemberRequest] = []
    for number in range(random.randint(4, 14)):
        if placed and random.random() < 0.3:
            engine.forget_member(placed.pop(random.randrange(len(placed))).member)
        size, priority = random.choice([1, 1, 2]), random.choice([OPPORTUNISTIC, 0, 5])
        gang = a_gang(f"gang{number}").in_vc(random.choice(sorted(topology.vcs)))
        request = gang.of(size).at(priority).member()
        decision = engine.plan(request, candidate_nodes=nodes)
        if isinstance(decision, Place):
            engine.apply(decision, now=0.0)
            placed.append(request)
        _compare(engine, request, dict.fromkeys(node for node in nodes if random.random() < 0.8))
    check(engine)


def _compare(engine: Engine, request: MemberRequest, nodes: dict[NodeName, None]) -> None:
    """Compare all rankings that a preemption would read."""
    decider = engine._components.decider
    search, allowed = decider.preemption, AllowedNodes(nodes)
    for source in search._sources(decider.ask(request, nodes)):
        whole = search._rankings.of(source)
        part, alone = EvictionsWithin(whole, allowed), search._rankings.only(source, nodes)
        assert list(part.cheapest()) == list(alone.cheapest())
        assert (part.capacity, len(part)) == (alone.capacity, len(alone))
        for cell in whole.tree.cells.values():
            assert part.entry(cell) == alone.entry(cell)
            if cell.level > whole.tree.node_level:
                assert list(part.bins_in(cell)) == list(alone.bins_in(cell))
