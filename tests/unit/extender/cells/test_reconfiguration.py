"""A new topology under running gangs: explained first, and nobody is ended."""

from dataclasses import replace

from extender.cells.model import Place, Placement, Wait
from extender.cells.observing import Bound
from extender.cells.reconfiguration import Effect
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName
from tests.unit.extender.cells.builders import GangBuilder, a_cluster, a_gang, an_engine
from tests.unit.extender.cells.world import World


def test_gangs_are_kept_downgraded_or_ignored_as_explained() -> None:
    world = World(a_cluster("4 nodes x 2").promising("a", node=2).promising("b", node=2))
    world.place(a_gang("old").of(2))
    world.place(a_gang("young").of(2))
    world.place(a_gang("elsewhere").of(2).in_vc("b").at(3))
    gone = NodeName(world.nodes_of("elsewhere")[0])
    smaller = a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1)

    explained = world.engine.explain_topology(smaller.build())
    before = world.engine.gangs()
    done = world.engine.change_topology(smaller.build())

    assert gone == "n2"
    assert done == explained
    assert {effect.gang.name: effect.effect for effect in done} == {
        "elsewhere": Effect.IGNORED,
        "old": Effect.KEPT,
        "young": Effect.DOWNGRADED,
    }
    assert [gang.members.keys() for gang in world.engine.gangs()] == [
        gang.members.keys() for gang in before
    ]
    assert done[2].reason == (
        "VC a has no cells left that gang ns/young could count on at priority 0; "
        "it goes on as opportunistic"
    )
    world.engine.check()


def test_explaining_changes_nothing() -> None:
    world = World(a_cluster("2 nodes x 2").promising("a", node=2))
    world.place(a_gang("g").of(2))
    before = world.engine.gangs(), world.engine.cells(), world.engine.vcs()

    world.engine.explain_topology(a_cluster("1 nodes x 2").promising("b", node=1).build())

    assert (world.engine.gangs(), world.engine.cells(), world.engine.vcs()) == before


def test_more_cells_are_used_at_once() -> None:
    world = World(a_cluster("1 nodes x 2").promising("a", node=1))
    world.place(a_gang("g").of(2))
    assert isinstance(world.ask(a_gang("next").of(2)), Wait)

    larger = a_cluster("2 nodes x 2").promising("a", node=2).build()
    fresh = an_engine(larger)
    world.engine.change_topology(larger)
    for node, _ in fresh.nodes():
        world.engine.observe_node(node)

    offered = [NodeName("n0"), NodeName("n1")]
    decision = world.engine.plan(a_gang("next").of(2).member(), candidate_nodes=offered)
    assert isinstance(decision, Place)


def test_recovery_does_not_depend_on_the_order_of_pods() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=1)
    running = [
        Bound(
            request=a_gang(name).of(2).at(priority).member(),
            placement=Placement(
                node=NodeName(node), leaf_cells=(0, 1), vc_cell_type=CellTypeName("node")
            ),
        )
        for name, priority, node in (("low", 1, "n0"), ("high", 7, "n1"))
    ]
    engines = [an_engine(cluster), an_engine(cluster)]

    engines[0].recover(running)
    engines[1].recover(running[::-1])

    assert engines[0].gangs() == engines[1].gangs()
    assert [gang.is_guaranteed for gang in engines[0].gangs()] == [True, False]
    engines[0].check()


# -- what is only held


def test_places_that_are_held_survive_a_new_topology() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=2)
    world = World(cluster)
    gang = a_gang("g").of(2, 2)
    world.apply(world.ask(gang))
    before = world.engine.gangs()

    (effect,) = world.engine.change_topology(cluster.build())

    assert (effect.effect, effect.unplaced) == (Effect.KEPT, ())
    assert world.engine.gangs() == before
    assert isinstance(world.ask(a_gang("thief").of(2)), Wait)
    assert world.engine.expire(now=60) == [gang.member().gang]


def test_places_that_wait_for_replacements_survive_a_new_topology() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=2)
    world = World(cluster)
    gang = a_gang("g").of(2, 2).whole()
    world.place(gang)
    world.engine.forget_member(gang.member(1).member)
    before = world.engine.gangs()

    world.engine.change_topology(cluster.build())

    assert world.engine.gangs() == before
    assert world.engine.expire(now=1000) == []


def test_a_place_that_is_gone_is_told_and_the_gang_goes_on() -> None:
    world = World(a_cluster("2 nodes x 2").promising("a", node=2))
    gang = a_gang("g").of(2, 2)
    for index in (0, 1):
        world.apply(world.ask(gang, member=index))
    placement = world.engine.placement(gang.member(0).member)
    assert placement is not None
    world.engine.observe_bound(
        gang.member(0), node=placement.node, leaf_cells=placement.leaf_cells, placement=placement
    )

    (effect,) = world.engine.change_topology(
        a_cluster("1 nodes x 2").promising("a", node=1).build()
    )

    world.engine.check()
    assert (effect.effect, effect.unplaced) == (Effect.TRIMMED, (gang.member(1).member,))
    assert effect.reason == (
        "gang ns/g goes on with what runs; 1 places that it only held are given up, and their "
        "members ask again"
    )


def test_a_lease_that_nobody_runs_under_is_forgotten_if_its_promise_is_gone() -> None:
    world = World(a_cluster("2 nodes x 2").promising("a", node=2).promising("b"))
    world.apply(world.ask(a_gang("g").of(2)))

    (effect,) = world.engine.change_topology(
        a_cluster("2 nodes x 2").promising("b", node=2).build()
    )

    assert (effect.effect, effect.unplaced) == (Effect.FORGOTTEN, (a_gang("g").member().member,))
    assert effect.reason == (
        "gang ns/g has no member that runs, and the places that it held are not there, or not for "
        "VC a, any more; it asks again"
    )
    assert world.engine.gangs() == []


def preempting() -> World:
    """Gang high waits for the opportunistic gang low."""
    world = World(a_cluster("2 nodes x 2").promising("a", node=2).promising("b"))
    world.place(a_gang("low").of(2, 2).at(-1))
    world.apply(world.ask(a_gang("high").of(2).at(5)))
    return world


def test_a_preemption_goes_on_under_a_new_topology() -> None:
    world = preempting()
    before = world.engine.gangs()

    world.engine.change_topology(a_cluster("3 nodes x 2").promising("a", node=2).build())

    world.engine.check()
    assert world.engine.gangs() == before
    world.end(a_gang("low").of(2, 2))
    assert isinstance(world.ask(a_gang("high").of(2).at(5)), Place)


def test_a_preemption_without_a_promise_is_forgotten() -> None:
    world = preempting()

    effects = world.engine.change_topology(a_cluster("2 nodes x 2").promising("b", node=2).build())

    assert [(effect.gang.name, effect.effect) for effect in effects] == [
        ("high", Effect.FORGOTTEN),
        ("low", Effect.KEPT),
    ]
    assert effects[0].reason == (
        "gang ns/high preempts, and what it had reserved is not there, or not for VC a, any more; "
        "it asks again"
    )


# -- standing


def downgraded() -> World:
    """Gang lazy lost its cell of VC a to gang high, which is on another node."""
    world = World(a_cluster("2 nodes x 2").promising("a", node=1).promising("b"))
    world.place(a_gang("lazy").of(2).lazy())
    world.place(a_gang("high").of(2).at(5))
    gang = world.gang("lazy")
    assert gang is not None
    assert not gang.is_guaranteed
    return world


def test_a_downgraded_gang_is_promoted_when_its_vc_has_cells_again() -> None:
    world = downgraded()

    effects = world.engine.change_topology(a_cluster("2 nodes x 2").promising("a", node=2).build())

    world.engine.check()
    assert [(effect.gang.name, effect.effect) for effect in effects] == [
        ("high", Effect.KEPT),
        ("lazy", Effect.PROMOTED),
    ]
    assert effects[1].reason == "VC a has cells that gang ns/lazy can count on again at priority 0"
    gang = world.gang("lazy")
    assert gang is not None
    assert gang.is_guaranteed
    assert gang.downgraded_by is None


def test_a_downgraded_gang_stays_so_while_its_vc_is_full() -> None:
    world = downgraded()

    effects = world.engine.change_topology(
        a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1).build()
    )

    assert [effect.effect for effect in effects] == [Effect.KEPT, Effect.KEPT]
    gang = world.gang("lazy")
    assert gang is not None
    assert not gang.is_guaranteed


# -- recovery


def bound(gang: GangBuilder, node: str, *leaf_cells: int) -> Bound:
    placement = Placement(
        node=NodeName(node),
        leaf_cells=leaf_cells,
        chain=ChainName("node"),
        vc_cell_type=CellTypeName("node"),
    )
    return Bound(request=gang.member(), placement=placement)


def test_recovery_never_breaks_a_promise() -> None:
    cluster = a_cluster("2 racks x 2 nodes x 2").promising("a", node=2).promising("b", rack=1)
    engine = an_engine(cluster)

    engine.recover(
        [bound(a_gang("one").of(2), "r0/n0", 0, 1), bound(a_gang("two").of(2), "r1/n0", 0, 1)]
    )

    engine.check()
    assert [gang.is_guaranteed for gang in engine.gangs()] == [True, False]


def test_released_pods_get_a_lease_on_the_place_they_were_told() -> None:
    engine = an_engine(a_cluster("3 nodes x 2").promising("a", node=2).promising("b", node=1))
    runs, waits, late = a_gang("runs").of(2), a_gang("waits").of(2), a_gang("late").of(2)

    lost = engine.recover(
        [bound(runs, "n0", 0, 1)],
        released=[bound(late, "n2", 0, 1), bound(waits, "n1", 0, 1), bound(runs, "n0", 0, 1)],
        now=5,
    )

    engine.check()
    # VC a has two nodes: "late" comes first by its name.
    assert lost == [waits.member().member]
    assert engine.placement(late.member().member) == replace(
        bound(late, "n2", 0, 1).placement, vc_cell="a/1"
    )
    assert engine.expire(now=64) == []
    assert engine.expire(now=65) == [late.member().gang]


def test_a_released_pod_whose_place_is_taken_asks_again() -> None:
    engine = an_engine(a_cluster("2 nodes x 2").promising("a", node=2))

    lost = engine.recover(
        [bound(a_gang("runs").of(2), "n0", 0, 1)], released=[bound(a_gang("g").of(1), "n0", 1)]
    )

    engine.check()
    assert lost == [a_gang("g").member().member]
    assert [gang.gang.name for gang in engine.gangs()] == ["runs"]


def test_a_downgraded_gang_is_recovered_as_guaranteed_only_if_its_vc_has_room() -> None:
    world = downgraded()
    members = [
        Bound(request=a_gang(name).of(2).at(priority).member(), placement=placement)
        for name, priority in (("high", 5), ("lazy", 0))
        if (placement := world.engine.placement(a_gang(name).member().member))
    ]
    # What its annotation says since it was bound: it counted on a node of its VC then.
    members[1] = replace(members[1], placement=replace(members[0].placement, node=NodeName("n0")))
    room = {1: False, 2: True}

    for promised, is_guaranteed in room.items():
        engine = an_engine(a_cluster("2 nodes x 2").promising("a", node=promised))
        engine.recover(members)
        engine.check()
        assert [gang.is_guaranteed for gang in engine.gangs()] == [True, is_guaranteed]
