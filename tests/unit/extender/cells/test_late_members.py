"""Late members and replacements are placed near their gang, with victims if necessary."""

from dataclasses import replace

from extender.cells.model import GangState, Place, Preempt, ReasonCode, Wait
from policy.submission import PodUid
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld


def a_pair_that_lost_a_member(world: EngineWorld) -> GangBuilder:
    """`pair` runs at priority 5 with one of its two members; a borrower took the other's leaf."""
    pair = a_gang("pair").of(1, 1).at(5)
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.place(a_gang("borrower").at(-1))
    return pair


def one_node() -> EngineWorld:
    return EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))


def test_a_replacement_preempts_the_gang_that_took_its_place() -> None:
    world = one_node()
    pair = a_pair_that_lost_a_member(world)

    decision = world.ask(pair, member=1)

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["borrower"]
    world.apply(decision)
    assert world.state("borrower") is GangState.BEING_PREEMPTED
    assert world.state("pair") is GangState.ALLOCATED
    assert world.ask(pair, member=1) == replace(decision, seats=(), nodes=())


def test_what_a_late_member_waits_for_is_kept_for_it() -> None:
    world = one_node()
    pair = a_pair_that_lost_a_member(world)
    world.apply(world.ask(pair, member=1))
    world.end(a_gang("borrower").at(-1))

    assert isinstance(world.ask(a_gang("thief").at(-1)), Wait)
    assert isinstance(world.ask(a_gang("lower").at(4)), Wait)
    decision = world.ask(pair, member=1)

    assert isinstance(decision, Place)
    world.apply(decision)
    gang = world.gang("pair")
    assert gang is not None
    assert (len(gang.members), gang.held, gang.waiting_members) == (2, (), ())


def test_a_late_member_that_is_withdrawn_leaves_its_victim_alone() -> None:
    world = one_node()
    pair = a_pair_that_lost_a_member(world)
    world.apply(world.ask(pair, member=1))

    world.engine.forget_member(pair.member(1).member)
    check(world.engine)

    assert world.state("borrower") is GangState.ALLOCATED
    assert world.state("pair") is GangState.ALLOCATED


def test_the_reservation_of_a_late_member_expires_and_its_gang_goes_on() -> None:
    world = one_node()
    pair = a_pair_that_lost_a_member(world)
    world.apply(world.ask(pair, member=1))

    assert [key.name for key in world.engine.expire(now=60)] == ["pair"]

    check(world.engine)
    assert world.state("borrower") is GangState.ALLOCATED
    assert world.nodes_of("pair") == ["n0"]


def test_a_late_member_of_equal_or_lower_priority_waits() -> None:
    world = one_node()
    pair = a_gang("pair").of(1, 1)
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.place(a_gang("equal"))

    assert isinstance(world.ask(pair, member=1), Wait)


def test_a_higher_priority_overtakes_the_late_member_and_not_its_gang() -> None:
    world = one_node()
    pair = a_pair_that_lost_a_member(world)
    world.apply(world.ask(pair, member=1))
    world.end(a_gang("borrower").at(-1))

    decision = world.ask(a_gang("urgent").at(9))

    assert isinstance(decision, Place)
    assert [key.name for key in decision.cancelled] == ["pair"]
    world.apply(decision)
    assert world.nodes_of("pair") == ["n0"]
    assert isinstance(world.ask(pair, member=1), Wait)


def test_a_gang_that_is_downgraded_preempts_no_longer() -> None:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=1).promising("b", node=2))
    pair = a_gang("pair").of(1, 1).at(5).lazy()
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.apply(world.ask(a_gang("borrower").at(-1), nodes=world.nodes_of("pair")))
    world.apply(world.ask(pair, member=1))
    assert world.state("borrower") is GangState.BEING_PREEMPTED

    decision = world.ask(a_gang("urgent").of(2).at(9))

    assert isinstance(decision, Place)
    assert [key.name for key in decision.downgraded] == ["pair"]
    world.apply(decision)
    assert world.state("borrower") is GangState.ALLOCATED
    gang = world.gang("pair")
    assert gang is not None
    assert (gang.waiting_members, gang.held) == ((), ())


def test_a_late_member_whose_reserved_node_went_bad_is_planned_anew() -> None:
    world = EngineWorld(a_cluster("3 nodes x 1").promising("a", node=3))
    pair = a_gang("pair").of(1, 1).at(5)
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.place(a_gang("old").at(-1))
    world.place(a_gang("young").at(-1))
    world.apply(world.ask(pair, member=1))
    assert world.state("young") is GangState.BEING_PREEMPTED
    world.engine.observe_node(a_node_cell(world.nodes_of("young")[0], is_healthy=False))

    decision = world.ask(pair, member=1)

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["old"]
    world.apply(decision)
    assert world.state("young") is GangState.ALLOCATED


def test_a_late_member_with_nowhere_left_gives_its_reservation_up() -> None:
    world = EngineWorld(a_cluster("2 nodes x 1").promising("a", node=2))
    pair = a_gang("pair").of(1, 1).at(5)
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.place(a_gang("borrower").at(-1))
    world.apply(world.ask(pair, member=1))
    world.engine.observe_node(a_node_cell(world.nodes_of("borrower")[0], is_healthy=False))

    decision = world.ask(pair, member=1)

    assert isinstance(decision, Wait)
    assert decision.cancels_own
    world.apply(decision)
    assert world.state("borrower") is GangState.ALLOCATED
    assert len(world.nodes_of("pair")) == 1


def test_two_late_members_reserve_a_place_each() -> None:
    world = EngineWorld(a_cluster("1 nodes x 3").promising("a", node=1))
    gang = a_gang("three").of(1, 1, 1).at(5)
    world.place(gang)
    for index in (1, 2):
        world.engine.forget_member(gang.member(index).member)
    borrowers = [a_gang(name).at(-1) for name in ("one", "two")]
    for borrower in borrowers:
        world.place(borrower)

    for index in (1, 2):
        world.apply(world.ask(gang, member=index))

    assert [world.state(b.request.gang.name) for b in borrowers] == [GangState.BEING_PREEMPTED] * 2
    stranger = replace(gang.member(1), member=PodUid("three-9"))
    full = world.engine.plan(stranger, candidate_nodes=world.nodes)
    assert isinstance(full, Wait)
    assert full.reason.code is ReasonCode.GANG_FULL


def test_a_late_member_is_placed_near_its_gang() -> None:
    world = EngineWorld(a_cluster("3 racks x 3 nodes x 2").promising("a", node=9))
    gang = a_gang("team").of(2, 2, 2)
    world.place(a_gang("filler").of(2))
    world.place(gang)
    (rack,) = world.racks("team")
    world.engine.forget_member(gang.member(2).member)
    world.engine.forget_member(gang.member(1).member)
    # Best fit alone would fill the rack of `filler`, which is used most.
    for index in (1, 2):
        decision = world.ask(gang, member=index)
        assert isinstance(decision, Place)
        world.apply(decision)

    assert world.racks("team") == {rack}
    assert world.racks("filler") != {rack}


def test_a_late_member_shares_a_node_with_its_gang_if_there_is_room() -> None:
    world = EngineWorld(a_cluster("2 nodes x 4").promising("a", node=2))
    gang = a_gang("team").of(2, 1)
    world.place(a_gang("other").of(3))
    world.place(gang)
    (node,) = set(world.nodes_of("team"))
    world.engine.forget_member(gang.member(1).member)

    decision = world.ask(gang, member=1)

    assert isinstance(decision, Place)
    assert decision.placement.node == node


# -- incremental gangs


def test_an_incremental_gang_preempts_for_the_members_that_are_enough() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("one").of(2).at(-1))
    world.place(a_gang("two").of(2).at(-1))

    decision = world.ask(a_gang("grows").of(2, 2, 2).at_least(1).at(5))

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["two"]
    assert len(decision.seats) == 1


def test_an_incremental_gang_ends_no_gang_while_enough_of_it_fits() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("borrower").of(2).at(-1))

    decision = world.ask(a_gang("grows").of(2, 2).at_least(1).at(5))

    assert isinstance(decision, Place)
    assert decision.others == ()


def test_the_smallest_members_of_an_incremental_gang_start_first() -> None:
    world = EngineWorld(a_cluster("1 nodes x 4").promising("a", node=1))

    decision = world.ask(a_gang("mixed").of(1, 4, 1, 1).at_least(3))

    assert isinstance(decision, Place)
    assert [len(p.leaf_cells) for p in (decision.placement, *decision.others)] == [1, 1, 1]


def test_members_of_an_incremental_gang_preempt_for_themselves_later() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("borrower").of(2).at(-1))
    grows = a_gang("grows").of(2, 2).at_least(1).at(5)
    world.apply(world.ask(grows))

    decision = world.ask(grows, member=1)

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["borrower"]


# -- several chains


def two_chains() -> EngineWorld:
    cluster = a_cluster("1 racks x 1 nodes x 2", name="one").chain(
        "1 pods x 1 nodes x 2", name="two"
    )
    cluster.promising("a", chain="one", node=1).promising("a", chain="two", node=1)
    return EngineWorld(cluster)


def test_a_gang_over_several_chains_preempts_in_all_of_them() -> None:
    world = two_chains()
    world.place(a_gang("left").of(2).at(-1))
    world.place(a_gang("right").of(2).at(-1))
    wide = a_gang("wide").of(2, 2).at(5)

    assert isinstance(world.ask(wide), Wait)
    decision = world.ask(wide.spanning())

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["left", "right"]
    assert {seat.chain for seat in decision.seats} == {"one", "two"}


def test_unequal_members_are_divided_between_chains_in_whatever_way_fits() -> None:
    cluster = a_cluster("1 racks x 1 nodes x 4", name="one").chain(
        "1 pods x 1 nodes x 3", name="two"
    )
    cluster.promising("a", chain="one", node=1).promising("a", chain="two", node=1)
    world = EngineWorld(cluster)

    # Filling the chain of three first with the largest member leaves 2 + 2 for the other.
    world.place(a_gang("wide").of(2, 2, 3).spanning())
    assert isinstance(world.ask(a_gang("more").of(1).spanning()), Wait)


def test_a_gang_over_several_chains_waits_where_its_vc_has_none() -> None:
    world = EngineWorld(a_cluster("1 nodes x 4").promising("a", node=1).promising("b"))

    assert isinstance(world.ask(a_gang("wide").of(2, 1).in_vc("b").spanning()), Wait)


def test_a_gang_over_several_chains_ends_only_gangs_in_its_way() -> None:
    world = two_chains()
    world.place(a_gang("left").of(2).at(-1))

    decision = world.ask(a_gang("wide").of(2, 2).at(5).spanning())

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["left"]


def test_a_late_member_for_which_nothing_can_be_reserved_waits_for_its_victim() -> None:
    """`low` counts on a node that is bad: only when it has ended is there a node for the member."""
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=2).promising("b", node=1))
    pair = a_gang("pair").of(2, 2).at(5)
    world.place(pair)
    world.engine.forget_member(pair.member(1).member)
    world.run(a_gang("low").of(2), ("n1", (0, 1)))
    world.engine.observe_node(a_node_cell("n1", is_healthy=False))

    decision = world.ask(pair, member=1)

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["low"]
    assert decision.seats == ()
    world.apply(decision)
    world.end(a_gang("low").of(2))
    assert isinstance(world.ask(pair, member=1), Place)


def test_a_late_member_that_gets_the_place_of_another_one_reserves_nothing_any_more() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("borrower").of(2).at(-1))
    late = a_gang("late").of(2, 2).at(5).at_least(1).whole()
    world.apply(world.ask(late, member=0))
    world.apply(world.ask(late, member=1))
    assert world.engine.is_preempting(late.member(1).gang)
    world.engine.forget_member(late.member(0).member)

    world.apply(world.ask(late, member=1))

    assert world.engine.has_place(late.member(1).member)
    assert not world.engine.is_preempting(late.member(1).gang)
    check(world.engine)
