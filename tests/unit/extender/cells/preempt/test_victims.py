"""The victims with the least damage, where a greedy choice is not enough."""

import pytest

from extender.cells.model import NodeCell, Preempt, Wait
from policy.submission import GangKey, NodeName
from tests.support.cells.builders import ClusterBuilder, GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld


def victims(world: EngineWorld, gang: GangBuilder) -> list[str]:
    decision = world.ask(gang)
    assert isinstance(decision, Preempt), decision
    return [victim.name for victim in decision.victims]


def nodes(text: str, *, node: int) -> EngineWorld:
    return EngineWorld(a_cluster(text).promising("a", node=node))


def test_three_gangs_on_one_node_rather_than_eight_on_another() -> None:
    world = nodes("2 nodes x 8", node=2)
    for index in range(8):
        world.run(a_gang(f"small{index}").at(-1), ("n0", (index,)))
    for name, leaves in (("x", (0, 1, 2)), ("y", (3, 4, 5)), ("z", (6, 7))):
        world.run(a_gang(name).of(len(leaves)).at(-1), ("n1", leaves))

    assert victims(world, a_gang("urgent").of(8).at(5)) == ["x", "y", "z"]


def test_one_gang_on_two_nodes_rather_than_one_on_each() -> None:
    world = nodes("4 nodes x 2", node=4)
    world.run(a_gang("one").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("two").of(2).at(-1), ("n1", (0, 1)))
    world.run(a_gang("both").of(2, 2).at(-1), ("n2", (0, 1)), ("n3", (0, 1)))

    assert victims(world, a_gang("urgent").of(2, 2).at(5)) == ["both"]
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["two"]


def test_the_gang_with_the_fewest_leaf_cells_elsewhere_goes() -> None:
    world = nodes("3 nodes x 2", node=3)
    world.run(a_gang("wide").of(1, 2).at(-1), ("n0", (0,)), ("n2", (0, 1)))
    world.run(a_gang("narrow").of(1).at(-1), ("n0", (1,)))
    world.run(a_gang("whole").of(2).at(-1), ("n1", (0, 1)))

    assert victims(world, a_gang("urgent").of(1).at(5)) == ["narrow"]
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["whole"]


def test_a_member_that_was_bound_by_hand_gives_its_gang_away() -> None:
    """Its gang claims other cells than those that it is in, so it is no candidate by its claims."""
    cluster = a_cluster("2 nodes x 8").pin("n1", "PIN").promising("a", node=1, pinned=["PIN"])
    world = EngineWorld(cluster)
    world.place(a_gang("equal").of(4).at(5))
    by_hand = ("n0", ())
    world.run(a_gang("low").of(8, 4).at(1).pinned("PIN"), ("n1", tuple(range(8))), by_hand)

    assert victims(world, a_gang("urgent").of(4).at(5)) == ["low"]


def test_the_youngest_work_is_that_of_the_pods_created_last() -> None:
    world = nodes("2 nodes x 2", node=2)
    young = a_gang("young").of(2).at(-1).created(200)
    old = a_gang("old").of(2).at(-1).created(100)
    world.run(young, ("n0", (0, 1)))
    world.run(old, ("n1", (0, 1)))  # seen later, as after a restart

    assert victims(world, a_gang("urgent").of(2).at(5)) == ["young"]


def test_a_gang_that_need_not_end_is_spared() -> None:
    """Clearing the cheapest nodes first takes `cheap`, which a larger gang makes unnecessary."""
    world = nodes("3 nodes x 4", node=3)
    world.run(a_gang("cheap").of(3).at(-1), ("n0", (0, 1, 2)))
    world.run(a_gang("fixed").of(4).at(9), ("n1", (0, 1, 2, 3)))
    world.run(a_gang("large").of(4).at(-1), ("n2", (0, 1, 2, 3)))

    # One member of four: `cheap` alone does it. Members of four and two: both nodes are needed,
    # but then `cheap`'s node holds the smaller one only without it.
    assert victims(world, a_gang("urgent").of(4).at(5)) == ["cheap"]
    assert victims(world, a_gang("urgent").of(4, 1).at(5)) == ["large"]


def test_of_many_victims_the_one_that_does_not_help_is_spared() -> None:
    """`cheap` is chosen first for the member of four; with `large` gone it can stay."""
    world = nodes("22 nodes x 4", node=22)
    world.run(a_gang("cheap").of(3).at(-1), ("n0", (0, 1, 2)))
    world.run(a_gang("large").of(4).at(-1), ("n1", (0, 1, 2, 3)))
    for index in range(2, 22):
        world.run(a_gang(f"kept{index}").of(2).at(9), (f"n{index}", (0, 1)))
        world.run(a_gang(f"lent{index}").of(2).at(-1), (f"n{index}", (2, 3)))

    chosen = victims(world, a_gang("urgent").of(4, *(2,) * 20, 1).at(5))

    assert "cheap" not in chosen
    assert len(chosen) == 21


def test_no_gang_is_ended_for_a_node_that_is_no_candidate() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("here").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("there").of(2).at(-1), ("n1", (0, 1)))

    decision = world.ask(a_gang("urgent").of(2).at(5).strict(), nodes=["n0"])

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["here"]


def two_chains() -> ClusterBuilder:
    cluster = a_cluster("1 racks x 1 nodes x 4", name="one").chain(
        "1 pods x 1 nodes x 4", name="two"
    )
    return cluster.promising("a", chain="one", node=1).promising("a", chain="two", node=1)


def test_the_chain_where_fewer_gangs_end_is_taken() -> None:
    world = EngineWorld(two_chains())
    for index in range(2):
        world.run(
            a_gang(f"half{index}").of(2).at(-1),
            ("one-r0/n0", (2 * index, 2 * index + 1)),
        )
    world.run(a_gang("whole").of(4).at(-1), ("two-p0/n0", (0, 1, 2, 3)))

    assert victims(world, a_gang("urgent").of(4).at(5)) == ["whole"]


@pytest.mark.parametrize("count", [40, 300])
def test_many_candidates_do_not_hide_a_way(count: int) -> None:
    """Two nodes can be cleared for two leaf cells, all others for one: all are needed."""
    world = nodes(f"{count + 2} nodes x 4", node=count + 2)
    for index in range(count + 2):
        kept = (0, 1) if index < 2 else (0, 1, 2)
        world.run(a_gang(f"kept{index}").of(len(kept)).at(9), (f"n{index}", kept))
        rest = tuple(range(len(kept), 4))
        world.run(a_gang(f"lent{index}").of(len(rest)).at(-1), (f"n{index}", rest))

    decision = world.ask(a_gang("urgent").of(2, 2, *(1,) * count).at(5))

    assert isinstance(decision, Preempt)
    assert len(decision.victims) == count + 2
    assert isinstance(world.ask(a_gang("urgent").of(2, 2, 2).at(5)), Wait)


def test_sixteen_of_many_equal_gangs_are_the_sixteen_youngest() -> None:
    world = nodes("60 nodes x 2", node=60)
    for index in range(60):
        low = a_gang(f"low{index:02}").of(2).created(index * 37 % 60)
        world.run(low, (f"n{index}", (0, 1)))

    chosen = victims(world, a_gang("urgent").times(16, 2).at(5))

    youngest = sorted(range(60), key=lambda index: index * 37 % 60)[-16:]
    assert chosen == [f"low{index:02}" for index in sorted(youngest)]


def test_a_gang_on_a_bad_node_is_ended_where_its_share_is_needed() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.run(a_gang("low").of(2), ("n0", (0, 1)))
    world.engine.observe_node(
        NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=2, is_healthy=False)
    )

    # Its leaf cells are of no use, but VC a has one node only: `low` must give it back.
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["low"]


def key_of(name: str) -> GangKey:
    return next(iter(a_gang(name).members())).gang


def breaking(world: EngineWorld, *names: str) -> None:
    for name in names:
        assert world.engine.observe_budget(key_of(name), breaks=True)


def test_two_gangs_rather_than_one_that_breaks_a_budget() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("service").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("one").of(1).at(-1), ("n1", (0,)))
    world.run(a_gang("two").of(1).at(-1), ("n1", (1,)))
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["service"]
    breaking(world, "service")
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["one", "two"]


def test_beside_each_other_the_gang_that_breaks_no_budget_goes() -> None:
    world = nodes("1 node x 4", node=1)
    world.run(a_gang("service").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("one").of(1).at(-1), ("n0", (2,)))
    world.run(a_gang("two").of(1).at(-1), ("n0", (3,)))
    breaking(world, "service")
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["one", "two"]
    assert victims(world, a_gang("urgent").of(3).at(5)) == ["service", "two"]


def test_a_guarantee_is_kept_although_that_breaks_a_budget() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("service").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("other").of(2).at(-1), ("n1", (0, 1)))
    breaking(world, "service", "other")
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["other"]
    assert victims(world, a_gang("urgent").of(2, 2).at(5)) == ["other", "service"]


def test_several_small_gangs_rather_than_one_on_two_nodes_that_breaks_a_budget() -> None:
    world = nodes("4 nodes x 2", node=4)
    world.run(a_gang("both").of(2, 2).at(-1), ("n0", (0, 1)), ("n1", (0, 1)))
    world.run(a_gang("three").of(2).at(-1), ("n2", (0, 1)))
    world.run(a_gang("four").of(2).at(-1), ("n3", (0, 1)))
    assert victims(world, a_gang("urgent").of(2, 2).at(5)) == ["both"]
    breaking(world, "both")
    assert victims(world, a_gang("urgent").of(2, 2).at(5)) == ["four", "three"]


def test_a_budget_is_remembered_when_the_cluster_changes() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("service").of(2).at(-1).created(200), ("n0", (0, 1)))
    world.run(a_gang("other").of(2).at(-1).created(100), ("n1", (0, 1)))
    breaking(world, "service")
    world.engine.rerank({})
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["other"]
    assert world.engine.observe_budget(key_of("service"), breaks=False)
    assert not world.engine.observe_budget(key_of("service"), breaks=False), "it is known"
    assert victims(world, a_gang("urgent").of(2).at(5)) == ["service"]
    assert not world.engine.observe_budget(key_of("unknown"), breaks=True)


def test_of_equal_victims_the_one_that_loses_the_least_work_goes() -> None:
    world = nodes("2 nodes x 2", node=2)
    dear, cheap = a_gang("dear").of(2).at(-1), a_gang("cheap").of(2).at(-1)
    world.run(dear.created(200).losing(600), ("n0", (0, 1)))
    world.run(cheap.created(100).losing(60), ("n1", (0, 1)))

    assert victims(world, a_gang("urgent").of(2).at(5)) == ["cheap"], "although it is older"


def test_fewer_gangs_go_before_cheaper_ones() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("dear").of(2).at(-1).losing(600), ("n0", (0, 1)))
    world.run(a_gang("one").of(1).at(-1), ("n1", (0,)))
    world.run(a_gang("two").of(1).at(-1), ("n1", (1,)))

    assert victims(world, a_gang("urgent").of(2).at(5)) == ["dear"]


def test_the_work_that_is_lost_counts_on_each_leaf_cell() -> None:
    world = nodes("2 nodes x 3", node=2)
    world.run(a_gang("x2").of(2).at(-1).losing(10), ("n0", (0, 1)))
    world.run(a_gang("x1").of(1).at(-1).losing(100), ("n0", (2,)))
    world.run(a_gang("y2").of(2).at(-1).losing(100), ("n1", (0, 1)))
    world.run(a_gang("y1").of(1).at(-1).losing(10), ("n1", (2,)))

    assert victims(world, a_gang("urgent").of(3).at(5)) == ["x1", "x2"], "120 s, and not 210 s"
