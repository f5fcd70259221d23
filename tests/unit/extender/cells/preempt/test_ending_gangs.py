"""Gangs that are ending already do no damage as victims, and spare other gangs."""

import pytest

from extender.cells.model import NodeCell, Place, Preempt, Wait
from policy.submission import NodeName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld


def victims(world: EngineWorld, gang: GangBuilder) -> list[str]:
    decision = world.ask(gang)
    assert isinstance(decision, Preempt), decision
    return [victim.name for victim in decision.victims]


def nodes(text: str, *, node: int) -> EngineWorld:
    return EngineWorld(a_cluster(text).promising("a", node=node))


URGENT = a_gang("urgent").of(2).at(5)


@pytest.fixture(params=[-1, 0], ids=["borrowed", "of-the-vc"])
def two(request: pytest.FixtureRequest) -> EngineWorld:
    """An old gang and a young one with less work; each has a node."""
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("old").of(2).at(request.param).created(1), ("n0", (0, 1)))
    world.run(a_gang("young").of(2).at(request.param).created(9), ("n1", (0, 1)))
    return world


def test_an_ending_gang_is_the_victim_rather_than_younger_work(two: EngineWorld) -> None:
    assert victims(two, URGENT) == ["young"]

    two.tell_to_end(a_gang("old").of(2))

    assert victims(two, URGENT) == ["old"]


def test_an_ending_gang_holds_its_leaf_cells_until_it_has_ended(two: EngineWorld) -> None:
    old = a_gang("old").of(2)
    two.tell_to_end(old)
    two.apply(two.ask(URGENT))

    assert isinstance(two.ask(URGENT), Preempt)
    assert victims(two, a_gang("next").of(2).at(5)) == ["young"], "these are kept for one only"
    two.end(old)
    decision = two.ask(URGENT)
    assert isinstance(decision, Place)
    assert decision.placement.node == "n0"


def test_told_again_nothing_is_new(two: EngineWorld) -> None:
    (member,) = a_gang("old").of(2).members()
    assert two.engine.observe_ending(member.member)
    assert not two.engine.observe_ending(member.member)
    two.end(a_gang("old").of(2))
    assert not two.engine.observe_ending(member.member)


def test_a_gang_of_which_only_some_are_ending_counts_as_any_other() -> None:
    world = nodes("3 nodes x 2", node=3)
    pair = a_gang("pair").of(2, 2).at(-1)
    world.run(pair, ("n0", (0, 1)), ("n1", (0, 1)))
    world.run(a_gang("one").of(2).at(-1), ("n2", (0, 1)))
    first, second = pair.members()
    world.engine.observe_ending(first.member)

    assert victims(world, URGENT) == ["one"]
    world.engine.observe_ending(second.member)
    assert victims(world, URGENT) == ["pair"]


def test_two_that_are_ending_rather_than_one_that_is_not() -> None:
    world = nodes("2 nodes x 2", node=2)
    world.run(a_gang("whole").of(2).at(-1), ("n0", (0, 1)))
    for index in range(2):
        half = a_gang(f"half{index}").of(1).at(-1)
        world.run(half, ("n1", (index,)))
        world.tell_to_end(half)

    assert victims(world, URGENT) == ["half0", "half1"]


def test_an_ending_gang_helps_another_victim_and_spares_a_larger_one() -> None:
    """One node is half of a gang that is ending: ending the other half is less than a whole one."""
    world = nodes("2 nodes x 4", node=2)
    leaving = a_gang("leaving").of(2).at(-1)
    world.run(leaving, ("n0", (0, 1)))
    world.run(a_gang("small").of(2).at(-1), ("n0", (2, 3)))
    world.run(a_gang("large").of(4).at(-1), ("n1", (0, 1, 2, 3)))
    urgent = a_gang("urgent").of(4).at(5)

    assert victims(world, urgent) == ["large"]
    world.tell_to_end(leaving)
    assert victims(world, urgent) == ["leaving", "small"]


def test_a_gang_on_two_nodes_that_it_shares_with_ending_gangs() -> None:
    """Looked at alone, each of its nodes costs as much as one of the others."""
    world = nodes("4 nodes x 4", node=4)
    world.run(a_gang("wide").of(2, 2).at(-1), ("n0", (0, 1)), ("n1", (0, 1)))
    for index in range(2):
        leaving = a_gang(f"leaving{index}").of(2).at(-1)
        world.run(leaving, (f"n{index}", (2, 3)))
        world.tell_to_end(leaving)
        world.run(a_gang(f"whole{index}").of(4).at(-1).created(9), (f"n{2 + index}", (0, 1, 2, 3)))

    chosen = victims(world, a_gang("urgent").of(4, 4).at(5))

    assert chosen == ["leaving0", "leaving1", "wide"]


def test_a_gang_waits_for_no_more_ending_gangs_than_it_needs() -> None:
    world = nodes("4 nodes x 2", node=4)
    for index in range(4):
        gang = a_gang(f"g{index}").of(2).at(-1)
        world.run(gang, (f"n{index}", (0, 1)))
        world.tell_to_end(gang)

    assert len(victims(world, URGENT)) == 1
    assert len(victims(world, a_gang("urgent").of(2, 2, 2).at(5))) == 3


def test_the_chain_where_it_waits_for_fewer_is_taken() -> None:
    cluster = a_cluster("1 racks x 1 nodes x 4", name="one").chain(
        "1 pods x 1 nodes x 4", name="two"
    )
    world = EngineWorld(
        cluster.promising("a", chain="one", node=1).promising("a", chain="two", node=1)
    )
    for name, node, leaves in (
        ("half0", "one-r0/n0", (0, 1)),
        ("half1", "one-r0/n0", (2, 3)),
        ("whole", "two-p0/n0", (0, 1, 2, 3)),
    ):
        gang = a_gang(name).of(len(leaves)).at(-1)
        world.run(gang, (node, leaves))
        world.tell_to_end(gang)

    assert victims(world, a_gang("urgent").of(4).at(5)) == ["whole"]


def test_an_ending_gang_that_may_not_be_ended_is_not_waited_for() -> None:
    """Guaranteed gangs of another VC, and equals, keep what they have."""
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    theirs = a_gang("theirs").in_vc("b").of(2).at(0)
    equal = a_gang("equal").of(2).at(5)
    world.place(theirs)
    world.place(equal)
    world.tell_to_end(theirs)
    world.tell_to_end(equal)

    assert isinstance(world.ask(URGENT), Wait)


def test_a_gang_that_gets_a_new_member_goes_on() -> None:
    world = nodes("3 nodes x 2", node=3)
    pair = a_gang("pair").of(2, 2).at(-1).whole()
    world.run(pair, ("n0", (0, 1)), ("n1", (0, 1)))
    world.run(a_gang("one").of(2).at(-1), ("n2", (0, 1)))
    world.tell_to_end(pair)
    first, _ = pair.members()
    world.engine.forget_member(first.member)
    check(world.engine)
    assert victims(world, URGENT) == ["pair"], "its place is held until its last member has ended"

    world.apply(world.ask(pair))
    assert victims(world, URGENT) == ["one"]


def test_an_ending_gang_on_a_bad_node_gives_back_its_share() -> None:
    """VC a has two nodes, one of them bad: the share there is needed elsewhere."""
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=2).promising("b", node=1))
    world.run(a_gang("stuck").of(2).created(1), ("n0", (0, 1)))
    world.run(a_gang("well").of(2).created(9), ("n1", (0, 1)))
    world.engine.observe_node(
        NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=2, is_healthy=False)
    )
    assert victims(world, URGENT) == ["well"]

    world.tell_to_end(a_gang("stuck").of(2))
    assert victims(world, URGENT) == ["stuck"]


def test_a_new_topology_keeps_which_gangs_are_ending(two: EngineWorld) -> None:
    two.tell_to_end(a_gang("old").of(2))
    larger = a_cluster("2 nodes x 2").promising("a", node=2).promising("b", node=0)

    two.engine.change_topology(larger.build())
    check(two.engine)

    assert victims(two, URGENT) == ["old"]


def test_many_gangs_that_are_ending_elsewhere_hide_no_victim() -> None:
    """More than are thought away: they still cost nothing."""
    count = 600
    world = nodes(f"{count} nodes x 2", node=count)
    for index in range(count):
        gang = a_gang(f"g{index}").of(2).at(-1)
        world.run(gang, (f"n{index}", (0, 1)))
        if index >= 10:
            for request in gang.members():
                world.engine.observe_ending(request.member)

    chosen = victims(world, a_gang("urgent").times(400, 2).at(5))

    assert len(chosen) == 400
    assert not {f"g{index}" for index in range(10)} & {*chosen}
