"""Members lie close together, on allowed nodes, and unequal ones are packed exactly."""

from extender.cells.model import Place, ReasonCode, Wait
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld


def racks_of_two() -> EngineWorld:
    return EngineWorld(a_cluster("3 racks x 2 nodes x 2").promising("a", node=6))


def test_a_gang_lies_in_as_few_racks_as_possible() -> None:
    world = racks_of_two()
    world.place(a_gang("single").of(2))

    world.place(a_gang("pair").of(2, 2))

    assert len(world.racks("pair")) == 1
    assert world.racks("pair") != world.racks("single")


def test_single_members_go_where_racks_are_broken_up_already() -> None:
    world = racks_of_two()
    world.place(a_gang("one").of(2))
    world.place(a_gang("two").of(2))

    assert world.racks("one") == world.racks("two")


def test_leaves_of_a_member_have_the_lowest_common_ancestor() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2 x 2").promising("a", node=1))
    world.place(a_gang("one").of(1))

    decision = world.place(a_gang("pair").of(2))
    last = world.place(a_gang("last").of(1))

    assert decision.placement.leaf_cells == (16, 17)
    assert last.placement.leaf_cells == (1,)


def test_unequal_members_are_packed_exactly() -> None:
    world = EngineWorld(a_cluster("2 nodes x 5").promising("a", node=2))

    # Largest first, best fit, puts 3 beside 2 and is stuck with 2 + 2 + 1: it takes a search.
    world.place(a_gang("puzzle").of(3, 2, 2, 2, 1))


def test_a_gang_spans_chains_only_where_it_says_so() -> None:
    cluster = a_cluster("1 racks x 1 nodes x 2", name="one").chain(
        "1 pods x 1 nodes x 2", name="two"
    )
    cluster.promising("a", chain="one", node=1).promising("a", chain="two", node=1)
    world = EngineWorld(cluster)
    gang = a_gang("wide").of(2, 2)

    assert isinstance(world.ask(gang), Wait)
    world.place(gang.spanning())


def test_with_strict_candidates_the_whole_gang_stays_on_them() -> None:
    world = racks_of_two()
    gang = a_gang("pair").of(2, 2).strict()

    decision = world.ask(gang, nodes=["r0/n0", "r2/n1"])

    assert isinstance(decision, Place)
    assert {decision.placement.node, decision.others[0].node} == {"r0/n0", "r2/n1"}
    only = world.ask(gang, nodes=["r0/n0"])
    assert isinstance(only, Wait)
    assert only.reason.code is ReasonCode.NODE_NOT_OFFERED


def test_the_one_node_that_is_offered_is_found_among_many() -> None:
    world = EngineWorld(a_cluster("300 nodes x 2").promising("a", node=300))

    decision = world.ask(a_gang("picky").of(2), nodes=["n250"])

    assert isinstance(decision, Place)
    assert decision.placement.node == "n250"


def test_leaves_are_close_even_if_others_come_first_in_order() -> None:
    world = EngineWorld(a_cluster("1 nodes x 4 x 2").promising("a", node=1))
    first = a_gang("first").of(1)
    world.place(first)
    world.place(a_gang("second").of(1))
    world.end(first)

    # Leaf 0 is idle, but its buddy is not: the pair goes where two are together.
    assert world.place(a_gang("pair").of(2)).placement.leaf_cells == (16, 17)


def test_racks_are_chosen_before_nodes() -> None:
    world = EngineWorld(a_cluster("2 racks x 3 nodes x 2").promising("a", node=6))
    world.place(a_gang("one").of(2))
    world.place(a_gang("two").of(2))

    # One node is left in rack 0, three in rack 1: a pair does not straddle.
    world.place(a_gang("pair").of(2, 2))

    assert world.racks("pair") == {"r1"}
