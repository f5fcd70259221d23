"""The largest shapes that can start now, and until when."""

from dataclasses import replace

from extender.queue.variants.sentences import shape_sentence
from extender.queue.variants.start_windows import StartWindow, WindowShape
from policy.queues.queues import DEFAULT_QUEUES
from policy.queues.windows import MaintenanceWindow
from policy.submission import GangKey, NodeName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.cells.snapshot import snapshot
from tests.support.queue.timed_world import TimedWorld
from tests.support.queue.trying import find_window

HOUR = 3600.0


def a_world() -> TimedWorld:
    """Four nodes of four leaf cells, three of them promised to one VC."""
    return TimedWorld(a_cluster("4 nodes x 4").promising("a", node=3).build())


def small(name: str, leaf_cells: int = 4) -> GangBuilder:
    return a_gang(name).of(leaf_cells)


def shape(members: int, leaf_cells: int, **more: object) -> WindowShape:
    return WindowShape(members=members, leaf_cells=leaf_cells, **more)  # type: ignore[arg-type]


def test_an_empty_cluster_is_one_window() -> None:
    world = a_world()
    guaranteed = find_window(world, vc="a", leaf_type="gpu")
    assert guaranteed.shapes == (shape(12, 1), shape(6, 2), shape(3, 4))
    assert guaranteed.largest == shape(3, 4)
    assert guaranteed.largest_on_one_node == shape(1, 4)
    assert find_window(world, vc="a", leaf_type="gpu", priority=-1).largest == shape(4, 4)


def test_gangs_that_run_make_windows_smaller() -> None:
    world = a_world()
    world.submit(small("old", 3), runs=HOUR)
    found = find_window(world, vc="a", leaf_type="gpu")
    assert found.largest == shape(9, 1)
    assert found.shapes == (shape(9, 1), shape(4, 2), shape(2, 4))
    assert found.largest_on_one_node == shape(1, 4)


def test_reserved_cells_are_a_window_with_an_end() -> None:
    world = a_world()
    for hour in range(1, 4):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(a_gang("large").times(3, 4), runs=HOUR)
    world.advance(1.5 * HOUR)
    found = find_window(world, vc="a", leaf_type="gpu")
    ends = {"until": 1000 + 3 * HOUR, "reserved_for": GangKey("ns", "large")}
    assert found.shapes == (shape(4, 1, **ends), shape(2, 2, **ends), shape(1, 4, **ends))
    assert (found.largest, found.largest_on_one_node) == (None, None)


def test_a_vc_gets_what_opportunistic_gangs_use_by_ending_them() -> None:
    world = a_world()
    world.submit(a_gang("borrows").times(4, 4).at(-1), runs=HOUR)
    found = find_window(world, vc="a", leaf_type="gpu")
    ends = {"victims": 1}
    assert found.shapes == (shape(12, 1, **ends), shape(6, 2, **ends), shape(3, 4, **ends))
    assert found.largest is None
    assert find_window(world, vc="a", leaf_type="gpu", priority=-1) == StartWindow(at=1000.0)


def test_an_unknown_leaf_type_has_no_window() -> None:
    assert find_window(a_world(), vc="a", leaf_type="tpu") == StartWindow(at=1000.0)


def test_a_search_changes_nothing() -> None:
    world = a_world()
    world.submit(a_gang("borrows").times(2, 4).at(-1), runs=HOUR)
    before = snapshot(world.engine)
    find_window(world, vc="a", leaf_type="gpu")
    assert snapshot(world.engine) == before


def test_nodes_are_of_use_until_their_maintenance_begins() -> None:
    nodes = tuple(NodeName(f"n{index}") for index in range(3))
    planned = MaintenanceWindow(name="power", nodes=nodes, begins=9000.0, ends=9600.0, notice=60.0)
    cluster = a_cluster("4 nodes x 4").promising("a", node=3).build()
    world = TimedWorld(cluster, queues=replace(DEFAULT_QUEUES, maintenance=(planned,)))
    world.work()
    found = find_window(world, vc="a", leaf_type="gpu")
    ends = {"until": 9000.0, "window": "power"}
    assert found.shapes == (
        shape(4, 1),
        shape(12, 1, **ends),
        shape(2, 2),
        shape(6, 2, **ends),
        shape(1, 4),
        shape(3, 4, **ends),
    )
    assert shape_sentence(found.shapes[-1], show=str, name=str) == (
        "3 members with 4 leaf cells each can start now, and must end before 9000.0, when the "
        "maintenance window power begins"
    )


def test_a_vc_that_is_gone_has_no_window() -> None:
    assert find_window(a_world(), vc="lost", leaf_type="gpu") == StartWindow(at=1000.0)
