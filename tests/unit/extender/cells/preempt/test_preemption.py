"""Victims are whole gangs: the fewest, the smallest, the youngest; and preemption as a state."""

from extender.cells.model import GangState, Place, Preempt, ReasonCode, Wait
from extender.cells.views.state_views import CellState
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_calls import check, list_cells
from tests.support.cells.engine_world import EngineWorld


def victims(decision: object) -> list[str]:
    assert isinstance(decision, Preempt), decision
    return [victim.name for victim in decision.victims]


def test_one_large_gang_is_ended_rather_than_two_small_ones() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("small-1").of(1))
    world.place(a_gang("small-2").of(1))
    world.place(a_gang("large").of(2))

    assert victims(world.ask(a_gang("urgent").of(2).at(5))) == ["large"]


def test_the_smaller_gang_goes_and_of_equal_ones_the_younger() -> None:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=3))
    world.place(a_gang("wide").of(2, 1))
    world.place(a_gang("old").of(1))
    world.place(a_gang("young").of(2))
    assert victims(world.ask(a_gang("urgent").of(1).at(5))) == ["old"]

    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("old").of(2))
    world.place(a_gang("young").of(2))
    assert victims(world.ask(a_gang("urgent").of(2).at(5))) == ["young"]


def test_no_gang_is_ended_where_it_does_not_help() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("low").of(1))
    world.place(a_gang("high").of(2).at(9))

    assert isinstance(world.ask(a_gang("wide").of(2, 2).at(5)), Wait)


def test_equal_priorities_do_not_preempt_each_other() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("lower").of(2).at(4))
    world.place(a_gang("equal").of(2).at(5))

    assert victims(world.ask(a_gang("next").of(2).at(5))) == ["lower"]
    assert isinstance(world.ask(a_gang("wide").of(2, 2).at(5)), Wait)


def preempting(world: EngineWorld) -> GangBuilder:
    """`low` runs, and `high` preempts it."""
    low, high = a_gang("low").of(2), a_gang("high").of(2).at(5)
    world.place(low)
    world.apply(world.ask(high))
    return high


def one_node() -> EngineWorld:
    return EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))


def test_cells_are_reserved_while_the_victim_ends_and_held_afterwards() -> None:
    world = one_node()
    high = preempting(world)
    (node,) = list_cells(world.engine)
    assert (node.state, node.priority) == (CellState.RESERVING, 5)
    assert world.state("low") is GangState.BEING_PREEMPTED

    world.end(a_gang("low").of(2))
    (node,) = list_cells(world.engine)
    assert (node.state, node.priority) == (CellState.RESERVED, 5)

    world.place(high)
    (node,) = list_cells(world.engine)
    assert (node.state, node.priority) == (CellState.USED, 5)


def test_a_cancelled_preemption_leaves_the_victim_as_it_was() -> None:
    world = one_node()
    high = preempting(world)

    world.end(high)

    assert world.gang("high") is None
    low = world.gang("low")
    assert low is not None
    assert low.state is GangState.ALLOCATED


def test_a_late_member_of_a_victim_waits() -> None:
    world = one_node()
    pair = a_gang("pair").of(1, 1)
    world.apply(world.ask(pair))
    world.apply(world.ask(a_gang("high").of(2).at(5)))

    decision = world.ask(pair, member=1)

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.BEING_PREEMPTED
    assert "ns/high" in decision.reason.text


def test_a_higher_priority_overtakes_a_preemption_and_ends_no_gang_for_it() -> None:
    world = one_node()
    preempting(world)
    world.end(a_gang("low").of(2))

    decision = world.ask(a_gang("top").of(2).at(9))

    assert isinstance(decision, Place)
    assert [key.name for key in decision.cancelled] == ["high"]
    world.apply(decision)
    assert isinstance(world.ask(a_gang("high").of(2).at(5)), Wait)


def test_a_lower_priority_cannot_steal_what_is_reserved() -> None:
    world = one_node()
    preempting(world)
    world.end(a_gang("low").of(2))

    assert isinstance(world.ask(a_gang("thief").of(1)), Wait)
    assert isinstance(world.ask(a_gang("borrower").of(1).at(-1)), Wait)


def test_a_preemption_whose_node_went_bad_is_planned_anew() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("old").of(2))
    world.place(a_gang("young").of(2))
    high = a_gang("high").of(2).at(5)
    world.apply(world.ask(high))
    world.engine.observe_node(a_node_cell("n1", is_healthy=False))

    decision = world.ask(high)

    assert victims(decision) == ["old"]
    world.apply(decision)
    assert world.state("young") is GangState.ALLOCATED


def test_a_preemption_is_planned_anew_for_the_whole_gang() -> None:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=3))
    for name in ("one", "two", "three"):
        world.place(a_gang(name).of(2))
    pair = a_gang("pair").of(2, 2).at(5)
    world.apply(world.ask(pair))
    world.engine.observe_node(a_node_cell(world.nodes_of("three")[0], is_healthy=False))

    decision = world.ask(pair)

    assert victims(decision) == ["one", "two"]
    assert isinstance(decision, Preempt)
    assert len(decision.seats) == 2


def test_an_unused_preemption_expires() -> None:
    world = one_node()
    preempting(world)

    assert [key.name for key in world.engine.expire(now=60)] == ["high"]
    check(world.engine)


def test_a_lazy_gang_is_downgraded_instead_where_there_are_idle_cells() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.place(a_gang("lazy").of(2).lazy())

    decision = world.place(a_gang("high").of(2).at(5))

    assert [key.name for key in decision.downgraded] == ["lazy"]
    lazy = world.gang("lazy")
    assert lazy is not None
    assert (lazy.is_guaranteed, lazy.state) == (False, GangState.ALLOCATED)
    assert lazy.downgraded_by is not None
    assert lazy.downgraded_by.name == "high"


def test_a_lazy_gang_is_ended_where_there_are_none() -> None:
    world = one_node()
    world.place(a_gang("lazy").of(2).lazy())

    assert victims(world.ask(a_gang("high").of(2).at(5))) == ["lazy"]


def test_only_the_preemptions_whose_cells_are_needed_are_overtaken() -> None:
    world = EngineWorld(a_cluster("4 nodes x 4").promising("a", node=4))
    for index in range(4):
        world.place(a_gang(f"low{index}").of(4))
    for index in range(3):
        world.apply(world.ask(a_gang(f"rival{index}").of(4).at(1)))

    decision = world.ask(a_gang("urgent").of(4, 4).at(5))

    assert victims(decision) == ["low2", "low3"]
    assert isinstance(decision, Preempt)
    assert [rival.name for rival in decision.cancelled] == ["rival0", "rival1"]
    world.apply(decision)
    assert world.state("rival2") is GangState.PREEMPTING
