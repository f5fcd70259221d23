"""A decision is applied as a whole, or refused if the state it was planned on has changed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from extender.cells.model import Decision, Place, Preempt, Wait
from policy.errors import ConflictError
from policy.placement import Placement
from policy.submission import NodeName, PodUid
from tests.support.cells.builders import ClusterBuilder, a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_calls import check, observe_bound
from tests.support.cells.engine_world import EngineWorld
from tests.support.cells.snapshot import snapshot


@dataclass
class Case:
    """A decision that was planned, and what happened since."""

    world: EngineWorld
    decision: Decision
    then: Callable[[], object]
    told: str


def two_nodes() -> EngineWorld:
    return EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2).promising("b"))


def two_racks() -> ClusterBuilder:
    return a_cluster("2 racks x 2 nodes x 2").promising("a", node=2).promising("b", rack=1)


def a_leaf_is_taken() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2), nodes=["n0"])
    return Case(
        world,
        decision,
        lambda: world.apply(world.ask(a_gang("first").of(1), nodes=["n0"])),
        "leaf n0/0 is held by gang ns/first",
    )


def a_node_is_bad() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2), nodes=["n0"])
    return Case(
        world,
        decision,
        lambda: world.engine.observe_node(a_node_cell("n0", is_healthy=False)),
        "leaf n0/0 is bad",
    )


def a_node_left_the_topology() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2), nodes=["n1"])
    smaller = a_cluster("1 nodes x 2").promising("a", node=1).build()
    return Case(
        world, decision, lambda: world.engine.change_topology(smaller), "cell n1 does not exist"
    )


def the_vc_is_gone() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2))
    other = a_cluster("2 nodes x 2").promising("b", node=2).build()
    return Case(
        world,
        decision,
        lambda: world.engine.change_topology(other),
        "asks for VC a, which does not exist",
    )


def it_was_applied_before() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2))
    return Case(world, decision, lambda: world.apply(decision), "all members have places")


def another_member_was_first() -> Case:
    world = two_nodes()
    gang = a_gang("g").of(2, 2)
    decision = world.ask(gang)
    return Case(
        world,
        decision,
        lambda: world.apply(world.ask(gang, member=1)),
        "all members have places",
    )


def its_place_went_to_another_member() -> Case:
    world = two_nodes()
    gang = a_gang("g").of(2, 2)
    world.apply(world.ask(gang))
    decision = world.ask(gang, member=1)
    other = replace(gang.member(1), member=PodUid("other"))
    return Case(
        world,
        decision,
        lambda: world.apply(world.engine.plan(other, candidate_nodes=world.nodes)),
        "the gang no longer has the place on node n1",
    )


def its_gang_is_gone() -> Case:
    world = two_nodes()
    gang = a_gang("g").of(2, 2)
    world.apply(world.ask(gang))
    decision = world.ask(gang, member=1)
    return Case(
        world,
        decision,
        lambda: world.engine.forget_member(PodUid("g-0")),
        "the gang no longer has places",
    )


def its_gang_is_another_one() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g").of(2))
    return Case(
        world,
        decision,
        lambda: world.apply(world.ask(a_gang("g").of(1).at(7))),
        "the first member has priority 7",
    )


def the_pod_is_in_another_gang() -> Case:
    world = two_nodes()
    decision = world.ask(a_gang("g"))
    other = replace(a_gang("other").member(), member=PodUid("g-0"))
    return Case(
        world,
        decision,
        lambda: world.apply(world.engine.plan(other, candidate_nodes=world.nodes)),
        "pod g-0 is a member of gang ns/other",
    )


def the_cell_is_mapped_for_another_vc() -> Case:
    world = EngineWorld(two_racks())
    decision = world.ask(a_gang("b").of(2).in_vc("b"), nodes=["r0/n1"])
    return Case(
        world,
        decision,
        lambda: world.apply(world.ask(a_gang("a").of(2), nodes=["r0/n0"])),
        "VC b cannot have cell r0",
    )


def a_promise_would_break() -> Case:
    world = EngineWorld(two_racks())
    decision = world.ask(a_gang("second").of(2), nodes=["r1/n0"])
    return Case(
        world,
        decision,
        lambda: world.apply(world.ask(a_gang("first").of(2), nodes=["r0/n0"])),
        "it would break a promise in chain rack",
    )


def the_gang_to_downgrade_ended() -> Case:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b"))
    world.place(a_gang("lazy").of(2).lazy())
    decision = world.ask(a_gang("high").of(2).at(5))
    assert isinstance(decision, Place)
    assert decision.downgraded
    return Case(
        world,
        decision,
        lambda: world.end(a_gang("lazy").of(2)),
        "gang ns/lazy cannot be downgraded",
    )


def full_of_borrowers() -> EngineWorld:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1).promising("b"))
    world.place(a_gang("low").of(2).at(-1))
    return world


def its_preemption_ended() -> Case:
    world = full_of_borrowers()
    high = a_gang("high").of(2).at(5)
    world.apply(world.ask(high))
    world.engine.observe_node(a_node_cell("n0", is_healthy=False))
    decision = world.ask(high)
    assert isinstance(decision, Wait)
    assert decision.cancels_own
    return Case(
        world,
        decision,
        lambda: world.engine.forget_member(PodUid("high-0")),
        "the gang does not preempt",
    )


def its_victim_made_room_for_another_gang() -> Case:
    world = full_of_borrowers()
    decision = world.ask(a_gang("high").of(2).at(5))
    assert isinstance(decision, Preempt)

    def then() -> None:
        world.end(a_gang("low").of(2))
        request = a_gang("foreign").of(2).member()
        observe_bound(world.engine, request, node=NodeName("n0"), leaf_cells=())

    return Case(world, decision, then, "leaf n0/0 is held by gang ns/foreign")


def its_victim_is_no_victim_any_more() -> Case:
    world = full_of_borrowers()
    decision = world.ask(a_gang("high").of(2).at(5))

    def then() -> None:
        world.end(a_gang("low").of(2))
        where = Placement(node=NodeName("n0"), leaf_cells=(0, 1))
        request = a_gang("low").of(2).at(9).member()
        observe_bound(world.engine, request, node=where.node, leaf_cells=(0, 1), placement=where)

    return Case(world, decision, then, "leaf n0/0 is held by gang ns/low")


def the_rival_to_overtake_has_its_victims_place() -> Case:
    world = full_of_borrowers()
    rival = a_gang("rival").of(2).at(5)
    world.apply(world.ask(rival))
    decision = world.ask(a_gang("high").of(2).at(7))
    assert isinstance(decision, Preempt)
    assert decision.cancelled

    def then() -> None:
        world.end(a_gang("low").of(2))
        world.apply(world.ask(rival))

    return Case(world, decision, then, "gang ns/rival does not preempt")


CASES = (
    a_leaf_is_taken,
    a_node_is_bad,
    a_node_left_the_topology,
    the_vc_is_gone,
    it_was_applied_before,
    another_member_was_first,
    its_place_went_to_another_member,
    its_gang_is_gone,
    its_gang_is_another_one,
    the_pod_is_in_another_gang,
    the_cell_is_mapped_for_another_vc,
    a_promise_would_break,
    the_gang_to_downgrade_ended,
    its_preemption_ended,
    its_victim_made_room_for_another_gang,
    its_victim_is_no_victim_any_more,
    the_rival_to_overtake_has_its_victims_place,
)


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_a_decision_that_is_out_of_date_changes_nothing(build: Callable[[], Case]) -> None:
    case = build()
    case.then()
    before = snapshot(case.world.engine)

    with pytest.raises(ConflictError, match="is out of date: ") as failure:
        case.world.engine.apply(case.decision, now=50)

    assert case.told in str(failure.value)
    assert snapshot(case.world.engine) == before
    check(case.world.engine)


def test_a_decision_about_a_place_that_the_member_has_may_be_applied_again() -> None:
    world = two_nodes()
    gang = a_gang("g").of(2)
    world.apply(world.ask(gang))
    again = world.ask(gang)

    world.apply(again)
    world.apply(again)

    assert len(world.engine.gangs()) == 1
