"""Every search ends within its budget and says so; steps are counted, never timed."""

from collections.abc import Collection, Iterator

import pytest

from extender.cells import budget as limits
from extender.cells.budget import KNOWN_SIZES, LARGEST_GANG, OutOfBudgetError, SearchBudget
from extender.cells.engine import Engine
from extender.cells.model import NodeCell, Place, ReasonCode, Reject, Wait
from policy.submission import NodeName
from policy.topology import ChainName
from tests.support.cells.builders import a_cluster, a_gang, an_engine, nodes_of
from tests.support.cells.engine_calls import observe_bound
from tests.support.cells.engine_world import EngineWorld


class CountedNodes(Collection[NodeName]):
    """Nodes that count how often they are asked about."""

    def __init__(self, names: list[NodeName]) -> None:
        self._names = dict.fromkeys(names)
        self.looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return name in self._names

    def __iter__(self) -> Iterator[NodeName]:
        self.looks += len(self._names)
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_engine(nodes: int) -> tuple[Engine, list[NodeName]]:
    """Nodes without a topology; the first half is full."""
    engine, names = Engine(lease_seconds=60), [NodeName(f"n{index:04}") for index in range(nodes)]
    for name in names:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=2))
    for name in names[: nodes // 2]:
        observe_bound(engine, a_gang(name).of(2).member(), node=name, leaf_cells=(0, 1))
    return engine, names


def test_a_budget_ends_and_remembers_it() -> None:
    budget = SearchBudget(2)
    budget.spend(2)
    assert not budget.is_cut

    with pytest.raises(OutOfBudgetError):
        budget.spend()

    assert budget.is_cut


def test_a_decision_without_steps_left_is_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    monkeypatch.setattr(limits, "STEPS", 0)
    monkeypatch.setattr(limits, "STEPS_PER_MEMBER", 0)

    decision = world.ask(a_gang("g").of(2, 2))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.SEARCH_ENDED


def test_a_few_candidates_among_many_nodes_cost_no_more_than_they_are() -> None:
    engine, names = open_engine(400)
    offered = CountedNodes(names[-3:])

    decision = engine.plan(a_gang("g").of(2, 2, 2).strict().member(), candidate_nodes=offered)

    assert isinstance(decision, Place)
    assert offered.looks < 40


def test_all_candidates_cost_no_more_than_the_gang() -> None:
    engine, names = open_engine(400)
    offered = CountedNodes(names)

    decision = engine.plan(a_gang("g").of(2, 2, 2).strict().member(), candidate_nodes=offered)

    assert isinstance(decision, Place)
    assert offered.looks < 40


def test_many_candidates_without_room_are_looked_at_once() -> None:
    engine, names = open_engine(400)
    offered = CountedNodes(names[:200])

    decision = engine.plan(a_gang("g").of(2, 2, 2).strict().member(), candidate_nodes=offered)

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.NODE_NOT_OFFERED
    assert offered.looks < 3 * 200


def test_the_largest_gang_is_placed_and_a_larger_one_refused() -> None:
    count = LARGEST_GANG // 8
    topology = a_cluster(f"{count} nodes x 8").promising("a", node=count).build()
    engine, nodes = an_engine(topology), nodes_of(topology)

    placed, refused = (
        engine.plan(a_gang("huge").times(size, 1).member(), candidate_nodes=nodes)
        for size in (LARGEST_GANG, LARGEST_GANG + 1)
    )

    assert isinstance(placed, Place)
    assert len(placed.seats) == LARGEST_GANG
    assert isinstance(refused, Reject)
    assert refused.reason.code is ReasonCode.TOO_LARGE


def test_a_gang_that_its_vc_can_never_hold_costs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    world = EngineWorld(a_cluster("4 nodes x 2").promising("a", node=2).promising("b", node=2))
    monkeypatch.setattr(limits, "STEPS", 0)
    monkeypatch.setattr(limits, "STEPS_PER_MEMBER", 0)

    decision = world.ask(a_gang("g").times(500, 1))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.TOO_LARGE


def test_sizes_that_were_asked_for_once_are_not_remembered_for_ever() -> None:
    engine = an_engine(a_cluster("2 nodes x 100").promising("a", node=2))
    nodes = [NodeName("n0"), NodeName("n1")]
    for name in nodes:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=100))
    for size in range(1, 101):
        engine.plan(a_gang("g").times(2, size).at(-1).member(), candidate_nodes=nodes)

    ranking = engine._table.idle[ChainName("node")]

    assert 8 < len(ranking._capacities) <= KNOWN_SIZES


def test_a_large_gang_of_unequal_members_is_placed_in_unused_nodes() -> None:
    world = EngineWorld(a_cluster("10 racks x 10 nodes x 4").promising("a", node=100))

    decision = world.ask(a_gang("g").of(*(3, 1) * 90))

    assert isinstance(decision, Place)
    assert len({seat.claim for seat in decision.seats}) == 90


def test_a_gang_that_ignores_candidates_fits_though_one_node_is_offered() -> None:
    world = EngineWorld(a_cluster("20 racks x 5 nodes x 4").promising("a", node=100))
    gang = a_gang("g").times(4, 4)._with(ignores_candidates=True)

    decision = world.ask(gang, nodes=["r13/n2"])

    assert isinstance(decision, Place)
    assert decision.placement.node == "r13/n2"
    assert {placement.node.split("/")[0] for placement in decision.others} == {"r13"}


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ((2,), "starts once more leaf cells are free"),
        ((2, 2), "a smaller gang would need fewer steps"),
        ((2, 1), "a smaller gang or equal members would need fewer steps"),
    ],
)
def test_a_search_that_is_cut_off_says_what_could_help(
    sizes: tuple[int, ...], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    monkeypatch.setattr(limits, "STEPS", 0)
    monkeypatch.setattr(limits, "STEPS_PER_MEMBER", 0)

    decision = world.ask(a_gang("g").of(*sizes))

    assert isinstance(decision, Wait)
    assert decision.reason.change.endswith(advice)
