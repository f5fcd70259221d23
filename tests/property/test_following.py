"""Nodes come, go, move and change under gangs: the engine follows as if it had been built anew."""

from hypothesis import settings

from extender.cells.observe.reconfiguration import Effect
from policy.cluster.document import ClusterDocument
from policy.cluster.safety import run_to_end
from policy.parser import DocumentKind, parse_document
from policy.submission import GangKey
from tests.support.cells.engine_calls import check
from tests.support.cells.following import RULE, Following

Following.TestCase.settings = settings(stateful_step_count=30)
TestFollowing = Following.TestCase


def a_world(*, a: str, b: str, nodes: int) -> Following:
    """So many nodes in racks of three, and the cells that two VCs were promised."""
    text = (
        f"apiVersion: cellgate.io/v1\nkind: Cluster\nnodeTopology: [{RULE}]\n"
        f"virtualClusters: {{a: {{virtualCells: [{a}]}}, b: {{virtualCells: [{b}]}}}}\n"
    )
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    world = Following()
    world.start(document=document, first=list(range(nodes)))
    return world


def promise(level: str, count: int) -> str:
    return f"{{leafType: x, level: {level}, cellNumber: {count}}}"


HOST = "kubernetes.io/hostname"
HELD = {"member": 0, "is_lazy": False, "is_whole": False, "binds": False}


def test_what_is_held_on_a_node_that_moves_is_given_up_as_if_built_anew() -> None:
    own = f"{promise(HOST, 1)}, {promise('rack', 1)}"
    world = a_world(a=own, b=f"{promise(HOST, 2)}, {promise('gpu', 3)}", nodes=7)
    world.join(number=0, rack=2, is_equipped=True, leaf_type="x", healthy=True)
    world.ask(number=0, vc="b", priority=0, sizes=(1, 1, 1), **HELD)
    world.follow()


def test_a_gang_is_downgraded_step_by_step_while_its_cells_stay_in_use() -> None:
    """The rack that is promised to the other VC can be given only on the nodes of the gang."""
    world = a_world(a=promise("rack", 1), b=promise(HOST, 3), nodes=6)
    for member in (0, 1):
        bound = {**HELD, "member": member, "binds": True}
        world.ask(number=0, vc="b", priority=0, sizes=(4, 4), **bound)
    world.leave(number=0)
    steps = world.update(run_to_end(world.builder.build_stepwise()).topology)
    for _ in range(10):
        next(steps)
        gang = world.engine.gang(GangKey("ns", "g0"))
        assert gang is not None
        assert gang.is_guaranteed
    [effect] = run_to_end(steps).effects
    assert effect.effect is Effect.DOWNGRADED
    check(world.engine)


def a_preemption_of_who_also_runs_elsewhere(*, loses_node: bool) -> Following:
    world = a_world(a=promise(HOST, 2), b=promise("gpu", 1), nodes=3)
    world.ask(number=0, vc="a", priority=-1, sizes=(1,), **HELD)
    if loses_node:
        world.leave(number=0)
    world.run_elsewhere(number=0, node=1)
    world.ask(number=1, vc="a", priority=0, sizes=(4, 4), **HELD)
    assert world.engine.is_preempting(GangKey("ns", "g1"))
    return world


def test_a_preemptor_loses_what_it_waits_for_with_the_lease_of_its_victim() -> None:
    """What is left of the victim is not ours to end; both leases end at once."""
    world = a_preemption_of_who_also_runs_elsewhere(loses_node=False)
    assert set(world.engine.expire(now=12)) == {GangKey("ns", "g0"), GangKey("ns", "g1")}
    world.all_invariants_hold()


def test_a_preemptor_that_loses_what_it_waits_for_with_a_node_is_told() -> None:
    world = a_preemption_of_who_also_runs_elsewhere(loses_node=True)
    world.follow()
    assert not world.engine.is_preempting(GangKey("ns", "g1"))
