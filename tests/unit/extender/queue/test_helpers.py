"""Members without leaf cells: they count, and start with their gang."""

import pytest

from extender.queue.held_bindings import QUIET_SECONDS
from extender.queue.model import ReleaseHelper, ReleasePod
from policy.submission import PodUid
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.driver import (
    deliver,
    is_released,
    is_whole,
    notices,
    release_all,
    run,
    step,
    submit,
)
from tests.support.queue.planner_world import PlannerWorld

LAUNCHER = PodUid("mpi-0")


@pytest.fixture
def world() -> PlannerWorld:
    """Two nodes of four leaf cells."""
    return PlannerWorld(a_cluster("1 racks x 2 nodes x 4").promising("a", node=2).build())


def test_a_launcher_is_released_with_its_workers(world: PlannerWorld) -> None:
    submit(world, a_gang("mpi").of(0, 4, 4))
    kinds = [type(action) for action in step(world)]
    assert sorted(kinds, key=str) == [ReleaseHelper, ReleasePod, ReleasePod]
    run(world)
    assert is_whole(world, "mpi")


def test_workers_wait_for_their_launcher(world: PlannerWorld) -> None:
    submit(world, a_gang("mpi").of(0, 4, 4), missing=1)
    assert step(world) == []
    world.create(a_gang("mpi").of(0, 4, 4).member(0), size=3)
    deliver(world)
    run(world)
    assert is_whole(world, "mpi")


def test_a_launcher_waits_until_its_workers_have_places(world: PlannerWorld) -> None:
    submit(world, a_gang("other").of(4))
    run(world)
    submit(world, a_gang("mpi").of(0, 4, 4))
    assert "needs 2 x 4 leaf cells" in notices(world)["mpi"]
    assert not is_released(world, LAUNCHER)
    world.delete(PodUid("other-0"))
    deliver(world)
    run(world)
    assert is_whole(world, "mpi")


def test_a_gang_of_helpers_starts_whole_without_cells(world: PlannerWorld) -> None:
    submit(world, a_gang("web").of(0, 0), missing=1)
    assert step(world) == []
    world.create(a_gang("web").of(0, 0).member(0), size=2)
    deliver(world)
    run(world)
    assert is_whole(world, "web")


def test_class_and_leaf_type_of_a_launcher_need_not_be_those_of_its_workers(
    world: PlannerWorld,
) -> None:
    """It may be created before its gang is decided about."""
    world.create(a_gang("mpi").of(0, 4, 4).at(5).typed("other").member(0), size=3)
    for index in (1, 2):
        world.create(a_gang("mpi").of(0, 4, 4).at(1).member(index), size=3)
    deliver(world)
    run(world)
    assert is_whole(world, "mpi")


def test_a_gang_pauses_when_its_launcher_does_not_arrive(world: PlannerWorld) -> None:
    """It would get the same places again; others may use them meanwhile."""
    submit(world, a_gang("mpi").of(0, 4, 4))
    release_all(world)
    for uid in ("mpi-1", "mpi-2"):
        world.schedule(PodUid(uid))
    world.now += QUIET_SECONDS
    world.step()
    assert (world.held, world.being_bound) == ({}, {})
    assert not world.engine.has_place(PodUid("mpi-1"))
    world.now += 4.9
    world.step()
    assert not world.engine.has_place(PodUid("mpi-1"))
    world.now += 0.1
    run(world)
    assert is_whole(world, "mpi")


def test_a_gang_resumes_when_kube_scheduler_finds_a_node_for_its_launcher(
    world: PlannerWorld,
) -> None:
    submit(world, a_gang("mpi").of(0, 4, 4))
    release_all(world)
    for uid in ("mpi-1", "mpi-2"):
        world.schedule(PodUid(uid))
    world.now += QUIET_SECONDS
    world.step()
    assert not world.planner.may_start(LAUNCHER)
    world.planner.offer_nodes(LAUNCHER, list(world.nodes))
    assert ReleaseHelper(uid=LAUNCHER) in step(world), "kube-scheduler must try it again"
    run(world)
    assert is_whole(world, "mpi")


def test_a_launcher_that_is_refused_ends_the_hold_soon(world: PlannerWorld) -> None:
    submit(world, a_gang("mpi").of(0, 4, 4))
    release_all(world)
    world.schedule(PodUid("mpi-1"))
    world.change(world.pods[LAUNCHER], is_refused=True)
    deliver(world)
    world.step()
    world.now += 3
    world.step()
    assert (world.held, world.being_bound) == ({}, {})


def test_workers_of_a_launcher_that_runs_already_start_whole(world: PlannerWorld) -> None:
    """The webhook was away when it was created."""
    submit(world, a_gang("mpi").of(0, 4, 4))
    world.change(world.pods[LAUNCHER], is_gated=False, node="any")
    deliver(world)
    release_all(world)
    world.schedule(PodUid("mpi-1"))
    assert world.being_bound == {}
    world.schedule(PodUid("mpi-2"))
    assert len(world.being_bound) == 2
