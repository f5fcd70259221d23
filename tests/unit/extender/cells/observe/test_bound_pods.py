"""Bound pods are facts: they are counted where they run, and leases give way to them."""

from dataclasses import replace

import pytest

from extender.cells.engine import Engine
from extender.cells.model import NodeCell, Place, Preempt, Reject, Wait
from policy.placement import Placement
from policy.submission import NodeName, PodUid
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_calls import check, list_cells, observe_bound
from tests.support.cells.engine_world import EngineWorld


def one_node(leaves: int = 4) -> EngineWorld:
    return EngineWorld(a_cluster(f"1 nodes x {leaves}").promising("a", node=1).promising("b"))


def run(
    world: EngineWorld, gang: GangBuilder, *leaf_cells: int, member: int = 0, node: str = "n0"
) -> None:
    """A pod is seen on a node, with devices that it names, or none."""
    request = gang.member(member)
    observe_bound(world.engine, request, node=NodeName(node), leaf_cells=leaf_cells)
    check(world.engine)


def leaves_of(world: EngineWorld, uid: str) -> tuple[int, ...]:
    placement = world.engine.placement(PodUid(uid))
    assert placement is not None
    return placement.leaf_cells


def idle(world: EngineWorld) -> int:
    return sum(top.idle_count for top in list_cells(world.engine))


# -- where a pod says it is


def test_a_pod_on_other_leaves_than_its_slot_moves_the_slot() -> None:
    world = one_node()
    gang = a_gang("g").of(2)
    world.apply(world.ask(gang))
    assert leaves_of(world, "g-0") == (0, 1)

    run(world, gang, 2, 3)

    assert leaves_of(world, "g-0") == (2, 3)
    assert idle(world) == 2


def test_members_that_were_bound_crosswise_change_places() -> None:
    world = one_node()
    gang = a_gang("g").of(2, 2)
    for index in (0, 1):
        world.apply(world.ask(gang, member=index))

    run(world, gang, 2, 3, member=0)
    run(world, gang, 0, 1, member=1)

    assert (leaves_of(world, "g-0"), leaves_of(world, "g-1")) == ((2, 3), (0, 1))


def test_a_lease_gives_way_to_a_pod_that_runs_there() -> None:
    world = one_node()
    leased, runs = a_gang("leased").of(2), a_gang("runs").of(2)
    world.apply(world.ask(leased))

    run(world, runs, 0, 1)

    assert leaves_of(world, "runs-0") == (0, 1)
    assert world.gang("leased") is None
    assert isinstance(world.ask(leased), Place)


def test_a_device_that_is_named_twice_counts_once_and_the_rest_elsewhere() -> None:
    world = one_node()

    run(world, a_gang("g").of(2), 3, 3)

    assert leaves_of(world, "g-0") == (3, 0)


@pytest.mark.parametrize("leaf_count", [0, -3])
def test_a_pod_without_leaf_cells_uses_none(leaf_count: int) -> None:
    world = one_node()
    request = replace(a_gang("g").member(), leaf_count=leaf_count)

    observe_bound(world.engine, request, node=NodeName("n0"), leaf_cells=())

    check(world.engine)
    assert world.gang("g") is None


def test_a_pod_that_changes_its_gang_leaves_the_old_one() -> None:
    world = one_node()
    old = a_gang("old").of(2)
    world.place(old)
    moved = replace(a_gang("new").of(2).member(), member=old.member().member)

    assert isinstance(world.engine.plan(moved, candidate_nodes=world.nodes), Reject)
    observe_bound(world.engine, moved, node=NodeName("n0"), leaf_cells=(0, 1))

    check(world.engine)
    assert world.gang("old") is None
    world.engine.forget_member(old.member().member)
    assert world.engine.gangs() == []


def test_seeing_a_pod_again_changes_nothing() -> None:
    world = one_node()
    gang, other = a_gang("g").of(2), a_gang("other").of(2)
    run(world, gang, 0, 1)
    run(world, other, 0, 1)
    assert (leaves_of(world, "g-0"), leaves_of(world, "other-0")) == ((0, 1), (2, 3))
    before = world.engine.gangs()

    run(world, gang, 0, 1)
    run(world, other, 0, 1)

    assert world.engine.gangs() == before


# -- foreign use


def test_a_gang_whose_first_member_is_foreign_still_counts_on_its_vc() -> None:
    world = one_node()
    gang = a_gang("g").of(1, 1).at(5)
    run(world, gang)

    world.apply(world.ask(gang, member=1))

    placement = world.engine.placement(PodUid("g-1"))
    assert placement is not None
    assert placement.vc_cell == "a/0"


def test_a_foreign_member_does_not_make_a_gang_immune() -> None:
    world = one_node()
    gang = a_gang("g").of(1, 1, 1, 1).in_vc("b").at(-1)
    run(world, gang)
    for index in (1, 2, 3):
        world.apply(world.ask(gang, member=index))

    decision = world.ask(a_gang("high").of(2).at(9))

    assert isinstance(decision, Preempt)
    assert [victim.name for victim in decision.victims] == ["g"]


def test_a_gang_that_is_foreign_altogether_is_never_a_victim() -> None:
    world = one_node()
    run(world, a_gang("g").of(4).in_vc("b").at(-1))

    assert isinstance(world.ask(a_gang("high").of(2).at(9)), Wait)


def test_foreign_use_of_a_node_that_is_all_leased_is_counted_when_the_lease_ends() -> None:
    world = one_node()
    leased = a_gang("leased").of(4)
    world.apply(world.ask(leased))
    run(world, a_gang("foreign").of(3))
    assert leaves_of(world, "foreign-0") == ()

    world.engine.expire(now=60)

    check(world.engine)
    assert leaves_of(world, "foreign-0") == (0, 1, 2)
    assert idle(world) == 1


def test_foreign_use_is_counted_before_the_next_request() -> None:
    world = one_node()
    first, second = a_gang("first").of(2), a_gang("second").of(2)
    world.place(first)
    world.place(second)
    run(world, a_gang("foreign").of(3))

    world.end(first)

    assert leaves_of(world, "foreign-0") == (0, 1)
    assert isinstance(world.ask(a_gang("next")), Wait)
    world.end(second)
    assert leaves_of(world, "foreign-0") == (0, 1, 2)


def test_more_pods_than_members_are_all_counted() -> None:
    world = one_node()
    gang = a_gang("g").of(1)
    for index in range(3):
        request = replace(gang.member(), member=PodUid(f"g-{index}"))
        observe_bound(world.engine, request, node=NodeName("n0"), leaf_cells=(index,))

    check(world.engine)
    assert idle(world) == 1


def test_a_stranger_in_a_gang_counts_against_no_cell_of_its_vc() -> None:
    world = one_node()
    world.place(a_gang("g").of(1, 1).at(5))
    world.engine.forget_member(PodUid("g-1"))

    run(world, a_gang("g").of(1, 1).in_vc("b").at(9), 3, member=1)

    placement = world.engine.placement(PodUid("g-1"))
    assert placement is not None
    assert (placement.leaf_cells, placement.vc_cell) == ((3,), None)


# -- preemptions whose cells a bound pod took


def preempting() -> EngineWorld:
    """Gang high of VC a waits for the opportunistic gang low, on the only node of its VC."""
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1).promising("b"))
    world.place(a_gang("low").of(2).at(-1))
    world.apply(world.ask(a_gang("high").of(2).at(5)))
    world.end(a_gang("low").of(2))
    return world


def test_a_foreign_pod_on_reserved_leaves_is_never_a_victim() -> None:
    world = preempting()

    run(world, a_gang("foreign"))

    assert world.gang("high") is None
    assert isinstance(world.ask(a_gang("high").of(2).at(5)), Wait)


def test_a_guaranteed_gang_of_another_vc_on_reserved_leaves_is_never_a_victim() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    low, high = a_gang("low").of(2, 2).at(-1), a_gang("high").of(1, 1).at(5)
    world.place(low)
    world.apply(world.ask(high))
    reserved = next(top for top in list_cells(world.engine) if top.state == "Reserving")
    world.end(low)
    where = Placement(node=NodeName(reserved.address), leaf_cells=(0, 1))
    observe_bound(
        world.engine,
        a_gang("other").of(2).in_vc("b").member(),
        node=where.node,
        leaf_cells=where.leaf_cells,
        placement=where,
    )

    check(world.engine)
    assert world.gang("high") is None
    other = world.gang("other")
    assert other is not None
    assert other.is_guaranteed
    assert isinstance(world.ask(high), Place)


def test_a_victim_that_only_has_foreign_members_left_is_no_victim_any_more() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1).promising("b"))
    low = a_gang("low").of(1, 1).at(-1).in_vc("b")
    run(world, low)
    world.apply(world.ask(low, member=1))
    world.apply(world.ask(a_gang("high").of(2).at(5)))

    world.engine.forget_member(PodUid("low-1"))

    check(world.engine)
    assert world.gang("high") is None


# -- nodes


def test_a_node_that_offers_fewer_devices_than_the_topology_says_has_bad_leaves() -> None:
    world = one_node()
    run(world, a_gang("g").of(1), 3)

    world.engine.observe_node(NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=2))

    check(world.engine)
    assert idle(world) == 1
    assert leaves_of(world, "g-0") == (3,)
    world.engine.observe_node(a_node_cell("n0"))
    assert idle(world) == 3


def test_missing_devices_are_never_those_of_running_pods() -> None:
    world = one_node(leaves=2)
    run(world, a_gang("first").of(1), 0)
    run(world, a_gang("second").of(1), 1)
    world.engine.observe_node(NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=1))

    world.end(a_gang("first").of(1))

    # One device, and `second` has it, whatever its number.
    assert idle(world) == 0
    assert isinstance(world.ask(a_gang("third")), Wait)
    world.end(a_gang("second").of(1))
    assert idle(world) == 1


def test_a_device_that_is_kept_for_a_preemptor_is_not_the_missing_one() -> None:
    world = one_node(leaves=2)
    run(world, a_gang("low").of(1), 1)
    world.engine.observe_node(NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=1))
    high = a_gang("high").of(1).at(5)
    world.apply(world.ask(high))

    world.end(a_gang("low").of(1))

    decision = world.ask(high)
    assert isinstance(decision, Place)
    assert decision.placement.leaf_cells == (1,)


def test_a_node_without_devices_has_no_leaves() -> None:
    engine = Engine(lease_seconds=60)
    engine.observe_node(NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=0))

    check(engine)
    assert isinstance(engine.plan(a_gang("g").member(), candidate_nodes=[NodeName("n0")]), Wait)


def test_cells_of_nodes_that_left_are_forgotten() -> None:
    engine = Engine(lease_seconds=60)
    for number in range(20):
        node = NodeName(f"n{number}")
        engine.observe_node(NodeCell(name=node, leaf_type=None, leaf_count=2))
        engine.forget_node(node)

    (tree,) = engine._table.trees.values()
    assert list(tree.cells.values()) == [tree.root]
