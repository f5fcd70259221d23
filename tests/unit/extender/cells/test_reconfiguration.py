"""A new topology under running gangs: explained first, and nobody is ended."""

from extender.cells.model import Place, Placement, Wait
from extender.cells.observing import Bound
from extender.cells.reconfiguration import Effect
from policy.submission import NodeName
from policy.topology import CellTypeName
from tests.unit.extender.cells.builders import a_cluster, a_gang, an_engine
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
