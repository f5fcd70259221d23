"""After a restart bound pods are taken in, and released pods get their lease again."""

from dataclasses import replace

import pytest

from extender.cells.engine import Engine
from extender.cells.model import NodeCell, PlacedMember, Wait
from extender.cells.views.listings import Holder
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang, an_engine
from tests.support.cells.engine_calls import check, list_nodes, recover
from tests.support.cells.engine_world import world_with_a_downgraded_gang


def bound(gang: GangBuilder, node: str, *leaf_cells: int) -> PlacedMember:
    placement = Placement(
        node=NodeName(node),
        leaf_cells=leaf_cells,
        chain=ChainName("node"),
        vc_cell_type=CellTypeName("node"),
    )
    return PlacedMember(request=gang.member(), placement=placement)


def test_recovery_does_not_depend_on_the_order_of_pods() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=1)
    running = [
        PlacedMember(
            request=a_gang(name).of(2).at(priority).member(),
            placement=Placement(
                node=NodeName(node), leaf_cells=(0, 1), vc_cell_type=CellTypeName("node")
            ),
        )
        for name, priority, node in (("low", 1, "n0"), ("high", 7, "n1"))
    ]
    engines = [an_engine(cluster), an_engine(cluster)]

    recover(engines[0], running)
    recover(engines[1], running[::-1])

    assert engines[0].gangs() == engines[1].gangs()
    assert [gang.is_guaranteed for gang in engines[0].gangs()] == [True, False]
    check(engines[0])


def test_recovery_never_breaks_a_promise() -> None:
    cluster = a_cluster("2 racks x 2 nodes x 2").promising("a", node=2).promising("b", rack=1)
    engine = an_engine(cluster)

    recover(
        engine,
        [bound(a_gang("one").of(2), "r0/n0", 0, 1), bound(a_gang("two").of(2), "r1/n0", 0, 1)],
    )

    check(engine)
    assert [gang.is_guaranteed for gang in engine.gangs()] == [True, False]


def test_released_pods_get_a_lease_on_the_place_they_were_told() -> None:
    engine = an_engine(a_cluster("3 nodes x 2").promising("a", node=2).promising("b", node=1))
    runs, waits, late = a_gang("runs").of(2), a_gang("waits").of(2), a_gang("late").of(2)

    lost = recover(
        engine,
        [bound(runs, "n0", 0, 1)],
        released=[bound(late, "n2", 0, 1), bound(waits, "n1", 0, 1), bound(runs, "n0", 0, 1)],
        now=5,
    )

    check(engine)
    # VC a has two nodes: "late" comes first by its name.
    assert lost == [waits.member().member]
    assert engine.placement(late.member().member) == replace(
        bound(late, "n2", 0, 1).placement, vc_cell="a/1"
    )
    assert engine.expire(now=64) == []
    assert engine.expire(now=65) == [late.member().gang]


def test_a_released_pod_is_planned_again_if_its_place_is_taken() -> None:
    engine = an_engine(a_cluster("2 nodes x 2").promising("a", node=2))

    lost = recover(
        engine,
        [bound(a_gang("runs").of(2), "n0", 0, 1)],
        released=[bound(a_gang("g").of(1), "n0", 1)],
    )

    check(engine)
    assert lost == [a_gang("g").member().member]
    assert [gang.gang.name for gang in engine.gangs()] == ["runs"]


@pytest.mark.parametrize("are_known", [True, False], ids=["nodes first", "nodes after"])
def test_recovery_counts_the_devices_of_a_node_that_lacks_some(are_known: bool) -> None:
    engine = Engine(
        lease_seconds=60, topology=a_cluster("1 nodes x 2").promising("a", node=1).build()
    )
    node = NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=1)
    if are_known:
        engine.observe_node(node)

    recover(engine, [bound(a_gang("runs").of(1), "n0", 1)])
    engine.observe_node(node)

    check(engine)
    decision = engine.plan(a_gang("next").member(), candidate_nodes=[NodeName("n0")])
    assert isinstance(decision, Wait)


@pytest.mark.parametrize("are_known", [True, False], ids=["nodes first", "nodes after"])
def test_a_released_pod_keeps_its_lease_whenever_its_node_is_seen(are_known: bool) -> None:
    engine, kept = Engine(lease_seconds=60), a_gang("kept").of(1)
    node = NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=2)
    if are_known:
        engine.observe_node(node)

    lost = recover(engine, [], released=[bound(kept, "n0", 1)])
    engine.observe_node(node)

    check(engine)
    assert lost == []
    held = {device: held for _, there in list_nodes(engine) for device, held in there.items()}
    assert held == {1: Holder(kept.member().gang, kept.member().member)}
    wide = engine.plan(a_gang("wide").of(2).member(), candidate_nodes=[node.name])
    assert isinstance(wide, Wait)
    assert engine.expire(now=60) == [kept.member().gang]


def test_a_released_pod_gives_way_to_what_runs_on_a_node_that_is_seen_later() -> None:
    engine = Engine(lease_seconds=60)
    runs, waits = a_gang("runs").of(2), a_gang("early").of(1).at(5)

    recover(engine, [bound(runs, "n0", 0, 1)], released=[bound(waits, "n0", 1)])
    engine.observe_node(NodeCell(name=NodeName("n0"), leaf_type=None, leaf_count=2))

    check(engine)
    assert [gang.gang.name for gang in engine.gangs()] == ["runs"]
    assert engine.placement(waits.member().member) is None


def test_a_downgraded_gang_is_recovered_as_guaranteed_only_if_its_vc_has_room() -> None:
    world = world_with_a_downgraded_gang()
    members = [
        PlacedMember(request=a_gang(name).of(2).at(priority).member(), placement=placement)
        for name, priority in (("high", 5), ("lazy", 0))
        if (placement := world.engine.placement(a_gang(name).member().member))
    ]
    # What its annotation says since it was bound: it counted on a node of its VC then.
    members[1] = replace(members[1], placement=replace(members[0].placement, node=NodeName("n0")))
    room = {1: False, 2: True}

    for promised, is_guaranteed in room.items():
        engine = an_engine(a_cluster("2 nodes x 2").promising("a", node=promised))
        recover(engine, members)
        check(engine)
        assert [gang.is_guaranteed for gang in engine.gangs()] == [True, is_guaranteed]
