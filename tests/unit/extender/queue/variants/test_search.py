"""What would let a waiting gang start earlier."""

from dataclasses import replace

from policy.queues.queues import DEFAULT_QUEUES
from policy.queues.windows import MaintenanceWindow
from policy.submission import NodeName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.cells.snapshot import snapshot
from tests.support.queue.timed_world import TimedWorld
from tests.support.queue.trying import find_variants, told

HOUR = 3600.0
NONE = "; no single change was found with which it starts earlier"
ENDS = "if the gangs that run end as expected"
NOT_AHEAD = "gangs ahead of it in the queue are not considered"
UNKNOWN = "it is not known when the gang can start as it is"


def a_world() -> TimedWorld:
    """Four nodes of four leaf cells, all promised to one VC."""
    return TimedWorld(a_cluster("4 nodes x 4").promising("a", node=4).build())


def small(name: str, leaf_cells: int = 4) -> GangBuilder:
    return a_gang(name).of(leaf_cells)


def test_fewer_members_start_now() -> None:
    world = a_world()
    world.submit(small("old"), runs=HOUR, predicted=HOUR)
    large = world.submit(a_gang("large").times(4, 4), runs=HOUR)
    assert told(find_variants(world, large)) == [
        f"the gang can start at 4600 as it is, {ENDS}; {NOT_AHEAD}",
        "with 3 members instead of 4 it starts now",
        "with 2 leaf cells per member instead of 4 it starts now",
    ]


def test_fewer_leaf_cells_for_each_member_start_now() -> None:
    world = a_world()
    for number in range(4):
        world.submit(small(f"old{number}", 2), runs=HOUR)
    large = world.submit(a_gang("large").times(4, 3), runs=HOUR)
    assert "with 2 leaf cells per member instead of 3 it starts now" in told(
        find_variants(world, large)
    )


def test_another_leaf_type_and_another_vc_start_now() -> None:
    cluster = a_cluster("1 nodes x 4", name="x", leaf_type="x")
    cluster.chain("1 nodes x 4", name="y", leaf_type="y")
    cluster.promising("a", chain="x", node=1).promising("a", chain="y", node=1)
    cluster.chain("2 nodes x 4", name="z", leaf_type="x").promising("b", chain="z", node=2)
    world = TimedWorld(cluster.build())
    world.submit(small("old").typed("x"), runs=HOUR)
    large = world.submit(small("large").typed("x"), runs=HOUR)
    assert told(find_variants(world, large, leaf_types=["y"], vcs=["b"])) == [
        UNKNOWN,
        "with leaf type y instead of x it starts now",
        "in VC b instead of a it starts now",
    ]


def test_fewer_members_start_earlier_if_none_start_now() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    large = world.submit(a_gang("large").times(4, 4), runs=HOUR)
    found = told(find_variants(world, large))
    assert found == [
        f"the gang can start at 15400 as it is, {ENDS}; {NOT_AHEAD}",
        "with 3 members instead of 4 it can start at 11800 instead of 15400, about 60 min "
        f"earlier, {ENDS}",
        "with 2 leaf cells per member instead of 4 it can start at 8200 instead of 15400, about "
        f"2 h earlier, {ENDS}",
    ]


def test_with_ends_that_are_not_known_nothing_is_told() -> None:
    world = a_world()
    for number in range(4):
        world.submit(small(f"old{number}"), runs=HOUR)
    large = world.submit(a_gang("large").times(2, 4), runs=HOUR)
    assert told(find_variants(world, large)) == [UNKNOWN + NONE]


def test_a_shorter_limit_lets_a_gang_use_a_gap() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(a_gang("large").times(4, 4), runs=HOUR)
    world.advance(1.5 * HOUR)
    waiting = world.submit(a_gang("waiting").times(1, 4), runs=9 * HOUR, limit=9 * HOUR)
    assert waiting not in world.started
    assert told(find_variants(world, waiting))[1:] == [
        "with activeDeadlineSeconds of at most 9000 it starts now, and ends before 15400, when its "
        "leaf cells are needed for the reservation of ns/large",
    ]


def test_a_shorter_limit_lets_a_gang_start_before_maintenance() -> None:
    nodes = tuple(NodeName(f"n{index}") for index in range(4))
    planned = MaintenanceWindow(name="power", nodes=nodes, begins=4700.0, ends=9600.0, notice=60.0)
    cluster = a_cluster("4 nodes x 4").promising("a", node=4).build()
    world = TimedWorld(cluster, queues=replace(DEFAULT_QUEUES, maintenance=(planned,)))
    waiting = world.submit(small("waiting"), runs=9 * HOUR, limit=9 * HOUR)
    assert waiting not in world.started
    assert told(find_variants(world, waiting))[1:] == [
        "with activeDeadlineSeconds of at most 3660 it starts now, and ends before 4700, when the "
        "maintenance window power begins",
    ]


def test_a_gang_may_end_others_if_it_is_smaller() -> None:
    world = a_world()
    world.submit(a_gang("old").times(1, 4), runs=HOUR)
    world.submit(a_gang("borrows").times(3, 4).at(-1), runs=HOUR)
    large = world.submit(a_gang("large").times(4, 4), runs=HOUR)
    assert told(find_variants(world, large)) == [
        UNKNOWN,
        "with 3 members instead of 4 it starts once 1 gang that it preempts has ended",
        "with 2 leaf cells per member instead of 4 it starts once 1 gang that it preempts has "
        "ended",
    ]


def test_the_search_changes_nothing() -> None:
    world = a_world()
    world.submit(small("old"), runs=HOUR, predicted=HOUR)
    large = world.submit(a_gang("large").times(4, 4), runs=HOUR)
    before, noticed = snapshot(world.engine), world.planner.seen[large].noticed
    find_variants(world, large, leaf_types=["y"], vcs=["b"])
    assert snapshot(world.engine) == before
    assert world.planner.seen[large].noticed is noticed
    world.advance(HOUR)
    assert large in world.started


def test_a_gang_that_has_started_has_no_variants() -> None:
    world = a_world()
    started = world.submit(small("old"), runs=HOUR)
    assert told(find_variants(world, started)) == ["the gang starts as it is"]
