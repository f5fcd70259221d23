"""A new topology under running gangs: no pod is ended, and the effect on each gang is reported."""

from extender.cells.model import Place, Wait
from extender.cells.observe.reconfiguration import Effect
from policy.submission import NodeName
from tests.support.cells.builders import a_cluster, a_gang, an_engine
from tests.support.cells.engine_calls import check, list_nodes, observe_bound
from tests.support.cells.engine_world import EngineWorld, world_with_a_downgraded_gang


def test_gangs_are_kept_downgraded_or_ignored() -> None:
    world = EngineWorld(a_cluster("4 nodes x 2").promising("a", node=2).promising("b", node=2))
    world.place(a_gang("old").of(2))
    world.place(a_gang("young").of(2))
    world.place(a_gang("elsewhere").of(2).in_vc("b").at(3))
    gone = NodeName(world.nodes_of("elsewhere")[0])
    smaller = a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1)

    before = world.engine.gangs()
    done = world.engine.change_topology(smaller.build())

    assert gone == "n2"
    assert {effect.gang.name: effect.effect for effect in done} == {
        "elsewhere": Effect.IGNORED,
        "old": Effect.KEPT,
        "young": Effect.DOWNGRADED,
    }
    assert [gang.members.keys() for gang in world.engine.gangs()] == [
        gang.members.keys() for gang in before
    ]
    assert done[2].reason == (
        "VC a has no cells left for gang ns/young at priority 0; "
        "the gang keeps running as opportunistic"
    )
    check(world.engine)


def test_more_cells_are_used_at_once() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    world.place(a_gang("g").of(2))
    assert isinstance(world.ask(a_gang("next").of(2)), Wait)

    larger = a_cluster("2 nodes x 2").promising("a", node=2).build()
    fresh = an_engine(larger)
    world.engine.change_topology(larger)
    for node, _ in list_nodes(fresh):
        world.engine.observe_node(node)

    offered = [NodeName("n0"), NodeName("n1")]
    decision = world.engine.plan(a_gang("next").of(2).member(), candidate_nodes=offered)
    assert isinstance(decision, Place)


# -- what is only held


def test_places_that_are_held_survive_a_new_topology() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=2)
    world = EngineWorld(cluster)
    gang = a_gang("g").of(2, 2)
    world.apply(world.ask(gang))
    before = world.engine.gangs()

    (effect,) = world.engine.change_topology(cluster.build())

    assert effect.effect is Effect.KEPT
    assert world.engine.gangs() == before
    assert isinstance(world.ask(a_gang("thief").of(2)), Wait)
    assert world.engine.expire(now=60) == [gang.member().gang]


def test_places_that_wait_for_replacements_survive_a_new_topology() -> None:
    cluster = a_cluster("2 nodes x 2").promising("a", node=2)
    world = EngineWorld(cluster)
    gang = a_gang("g").of(2, 2).whole()
    world.place(gang)
    world.engine.forget_member(gang.member(1).member)
    before = world.engine.gangs()

    world.engine.change_topology(cluster.build())

    assert world.engine.gangs() == before
    assert world.engine.expire(now=1000) == []


def test_a_place_that_is_gone_is_told_and_the_gang_goes_on() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    gang = a_gang("g").of(2, 2)
    for index in (0, 1):
        world.apply(world.ask(gang, member=index))
    placement = world.engine.placement(gang.member(0).member)
    assert placement is not None
    observe_bound(
        world.engine,
        gang.member(0),
        node=placement.node,
        leaf_cells=placement.leaf_cells,
        placement=placement,
    )

    (effect,) = world.engine.change_topology(
        a_cluster("1 nodes x 2").promising("a", node=1).build()
    )

    check(world.engine)
    assert effect.effect is Effect.TRIMMED
    assert not world.engine.has_place(gang.member(1).member)
    assert effect.reason == (
        "gang ns/g keeps its running members; unused places given up: 1; their members are "
        "planned again"
    )


def test_a_lease_without_running_pods_is_forgotten_if_its_promise_is_gone() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2).promising("b"))
    world.apply(world.ask(a_gang("g").of(2)))

    (effect,) = world.engine.change_topology(
        a_cluster("2 nodes x 2").promising("b", node=2).build()
    )

    assert effect.effect is Effect.FORGOTTEN
    assert effect.reason == (
        "gang ns/g has no running member, and the cells that it leased do not exist, or are not "
        "available to VC a, any more; it is planned again"
    )
    assert world.engine.gangs() == []


def preempting() -> EngineWorld:
    """Gang high waits for the opportunistic gang low."""
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2).promising("b"))
    world.place(a_gang("low").of(2, 2).at(-1))
    world.apply(world.ask(a_gang("high").of(2).at(5)))
    return world


def test_a_preemption_goes_on_under_a_new_topology() -> None:
    world = preempting()
    before = world.engine.gangs()

    world.engine.change_topology(a_cluster("3 nodes x 2").promising("a", node=2).build())

    check(world.engine)
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
        "the preemption of gang ns/high is cancelled: the cells that it reserved do not exist, or "
        "are not available to VC a, any more; it is planned again"
    )


# -- standing


def test_a_downgraded_gang_is_promoted_when_its_vc_has_cells_again() -> None:
    world = world_with_a_downgraded_gang()

    effects = world.engine.change_topology(a_cluster("2 nodes x 2").promising("a", node=2).build())

    check(world.engine)
    assert [(effect.gang.name, effect.effect) for effect in effects] == [
        ("high", Effect.KEPT),
        ("lazy", Effect.PROMOTED),
    ]
    assert effects[1].reason == (
        "VC a has cells for gang ns/lazy again; the gang is guaranteed at priority 0"
    )
    gang = world.gang("lazy")
    assert gang is not None
    assert gang.is_guaranteed
    assert gang.downgraded_by is None


def test_a_downgraded_gang_stays_so_while_its_vc_is_full() -> None:
    world = world_with_a_downgraded_gang()

    effects = world.engine.change_topology(
        a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1).build()
    )

    assert [effect.effect for effect in effects] == [Effect.KEPT, Effect.KEPT]
    gang = world.gang("lazy")
    assert gang is not None
    assert not gang.is_guaranteed
