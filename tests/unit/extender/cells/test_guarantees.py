"""A VC gets the cells that it was promised, whatever other gangs run."""

from extender.cells.model import Place, Preempt, ReasonCode, Reject, Wait
from tests.support.cells.builders import a_cluster, a_gang, a_node_cell, without_node
from tests.support.cells.engine_calls import observe_bound
from tests.support.cells.engine_world import EngineWorld


def test_a_rack_that_was_promised_is_not_broken_up_by_others() -> None:
    world = EngineWorld(
        a_cluster("2 racks x 2 nodes x 2").promising("a", rack=1).promising("b", node=2)
    )

    world.place(a_gang("b1").in_vc("b").of(2))
    world.place(a_gang("b2").in_vc("b").of(2))
    world.place(a_gang("big").in_vc("a").of(2, 2))

    assert world.racks("b1") == world.racks("b2")
    assert world.racks("big") != world.racks("b1")


def test_a_gang_of_several_nodes_does_not_break_up_a_promised_rack_either() -> None:
    world = EngineWorld(
        a_cluster("2 racks x 3 nodes x 2").promising("a", node=3).promising("b", rack=1)
    )
    world.place(a_gang("single").in_vc("a").of(2))
    world.place(a_gang("borrower").in_vc("b").of(2).at(-1))
    assert world.racks("single") == world.racks("borrower")

    decision = world.ask(a_gang("pair").in_vc("a").of(2, 2))

    # The other rack is idle, but it is b's: the borrower has to go.
    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["borrower"]


def test_a_vc_gets_no_more_than_it_was_promised() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.place(a_gang("one").in_vc("a").of(2))

    decision = world.ask(a_gang("two").in_vc("a").of(1))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.VC_FULL
    assert decision.reason.text == (
        "gang ns/two needs 1 leaf cell in one cell of VC a; 0 of the 2 leaf "
        "cells promised to VC a are unused; starts once other gangs of VC a have ended, or with a "
        "higher priority than theirs"
    )


def test_opportunistic_gangs_use_what_others_do_not_and_leave_when_they_do() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.place(a_gang("borrower").in_vc("a").of(2, 2).at(-1))

    decision = world.ask(a_gang("owner").in_vc("b").of(2))

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["borrower"]
    assert decision.reason.change == "starts once ns/borrower has ended"


def test_a_guaranteed_gang_of_another_vc_is_never_a_victim() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.place(a_gang("mine").in_vc("a").of(2))
    world.place(a_gang("theirs").in_vc("b").of(2))

    assert isinstance(world.ask(a_gang("urgent").in_vc("a").of(2, 2).at(1000)), Wait)


def test_small_cells_of_one_node_are_not_put_together() -> None:
    world = EngineWorld(a_cluster("1 nodes x 4").promising("a", gpu=4))

    assert isinstance(world.ask(a_gang("wide").of(2)), Wait)
    world.place(a_gang("narrow").of(1, 1, 1, 1))


def test_a_pinned_cell_serves_only_gangs_that_ask_for_it() -> None:
    cluster = a_cluster("2 nodes x 2").pin("n1", "PIN").promising("a", node=1, pinned=["PIN"])
    world = EngineWorld(cluster)

    world.place(a_gang("plain").of(2))
    assert isinstance(world.ask(a_gang("more").of(1)), Wait)
    world.place(a_gang("special").of(2).pinned("PIN"))

    assert world.nodes_of("special") == ["n1"]


def test_requests_that_can_never_be_served_are_rejected_with_a_code() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    cases = {
        ReasonCode.UNKNOWN_VC: a_gang("g").in_vc("nobody"),
        ReasonCode.UNKNOWN_PINNED_CELL: a_gang("g").pinned("PIN"),
        ReasonCode.OPPORTUNISTIC_PINNED: a_gang("g").pinned("PIN").at(-1),
        ReasonCode.UNKNOWN_LEAF_TYPE: a_gang("g").typed("H100"),
        ReasonCode.BAD_PRIORITY: a_gang("g").at(1001),
    }
    for code, gang in cases.items():
        decision = world.ask(gang)
        assert isinstance(decision, Reject)
        assert decision.reason.code is code


def test_bad_nodes_are_avoided_and_doomed_cells_shown() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.engine.observe_node(a_node_cell("n0", is_healthy=False))

    world.place(a_gang("one").of(2))
    decision = world.ask(a_gang("two").of(2))

    assert world.nodes_of("one") == ["n1"]
    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.BAD_CELLS
    assert [cell.is_doomed for cell in world.cells_of("a")] == [False, True]


def test_a_single_bad_device_spoils_only_itself() -> None:
    world = EngineWorld(a_cluster("1 nodes x 4").promising("a", node=1))
    world.engine.observe_node(a_node_cell("n0", bad=(1,)))

    decision = world.place(a_gang("rest").of(3))

    assert decision.placement.leaf_cells == (0, 2, 3)


def test_foreign_use_is_never_handed_out_nor_ended() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    observe_bound(world.engine, a_gang("stranger").member(), node="n0", leaf_cells=())  # type: ignore[arg-type]

    decision = world.place(a_gang("one").of(1))

    assert decision.placement.leaf_cells == (1,)
    assert isinstance(world.ask(a_gang("two").of(1).at(1000)), Preempt)
    assert isinstance(world.ask(a_gang("both").of(2).at(1000)), Wait)


def test_a_gang_is_only_ever_placed_whole() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("one").of(1))

    assert isinstance(world.ask(a_gang("pair").of(2, 2)), Wait)
    assert isinstance(world.ask(a_gang("fits").of(2, 1)), Place)


def test_where_racks_differ_the_smaller_one_serves_a_promised_rack() -> None:
    whole = a_cluster("2 racks x 3 nodes x 2").promising("a", rack=1).promising("b", node=3).build()
    world = EngineWorld(without_node(whole, "r0/n2"))

    for name in ("one", "two", "three"):
        world.place(a_gang(name).in_vc("b").of(2))
    world.place(a_gang("rack").in_vc("a").of(2, 2))

    assert world.racks("rack") == {"r0"}
    assert world.racks("one") == world.racks("two") == world.racks("three") == {"r1"}


def test_where_nodes_differ_a_promised_node_is_not_the_one_that_others_need() -> None:
    small = ("n0/1", "n0/2", "n1/1", "n1/2")
    cluster = a_cluster("3 nodes x 3").without(*small).promising("a", node=1).promising("b", gpu=4)
    world = EngineWorld(cluster)

    # Given the node of three, VC a would leave two leaf cells of the four that b was promised.
    assert isinstance(world.ask(a_gang("three").of(3)), Wait)
    assert isinstance(world.ask(a_gang("one").of(1), nodes=["n2"]), Wait)
    world.place(a_gang("one").of(1))
    for number in range(4):
        world.place(a_gang(f"b{number}").in_vc("b"))
