"""Preemption by plan: whole gangs end, for whoever is still there when they have."""

from extender.cells.model import GangState
from extender.queue.model import EvictPod, ReleasePod
from policy.submission import GangKey, PodUid
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    nodes_of_gang,
    run,
    step,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import LEASE_SECONDS, PlannerWorld


def test_victims_end_whole_and_the_preemptor_starts_in_their_place() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4).at(0))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    actions = step(world)
    assert sorted(action.uid for action in actions if isinstance(action, EvictPod)) == [
        "low-0",
        "low-1",
    ]
    run(world)
    assert is_whole(world, "high")
    assert nodes_of_gang(world, "low") == []


def test_nobody_slips_into_what_victims_leave() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4).at(0))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    world.step()
    world.perform(0, is_done=True, is_told_done=True)
    deliver(world)
    submit(world, a_gang("thief").of(4).at(0))
    world.step()
    assert world.engine.placement(PodUid("thief-0")) is None


def _lose_preemptor(world: PlannerWorld) -> None:
    """Let "high" go before anything that it wants is done."""
    for uid in ("high-0", "high-1"):
        world.delete(PodUid(uid))
    deliver(world)
    while world.actions:
        world.perform(0, is_done=True, is_told_done=True)
    deliver(world)


def test_victims_are_spared_when_the_preemptor_goes_away_first() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4).at(0))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    world.step()
    _lose_preemptor(world)
    assert is_whole(world, "low")


def _world_where_nothing_can_be_kept() -> PlannerWorld:
    """Somebody has to end for "high", which then needs the cells of its VC in another order."""
    cluster = a_cluster("2 racks x 2 nodes x 2").promising("a", node=2).promising("b", rack=1)
    world = PlannerWorld(cluster.build())
    for gang in (
        a_gang("borrower").of(1, 1).in_vc("b").at(-1),
        a_gang("low").of(2).in_vc("a").at(0),
    ):
        submit(world, gang)
        run(world)
    submit(world, a_gang("high").of(2, 2).in_vc("a").at(5))
    return world


def test_victims_end_also_where_what_they_leave_cannot_be_kept() -> None:
    world = _world_where_nothing_can_be_kept()
    ends = [action.uid for action in step(world) if isinstance(action, EvictPod)]
    assert (ends, world.engine.is_preempting(GangKey("ns", "high"))) == (["low-0"], False)
    run(world)
    assert is_whole(world, "high")
    assert is_whole(world, "borrower")


def test_victims_are_spared_also_where_nothing_could_be_kept() -> None:
    world = _world_where_nothing_can_be_kept()
    world.step()
    _lose_preemptor(world)
    assert is_whole(world, "low")


def test_who_waits_for_a_victim_that_takes_too_long_looks_at_others() -> None:
    world = world_of_two_vcs()
    for name in ("stuck", "healthy"):
        submit(world, a_gang(name).of(4).at(0))
    run(world)
    world.engine.observe_ending(PodUid("stuck-0"))
    submit(world, a_gang("high").of(4).at(5))
    assert {action.uid for action in step(world)} == {"stuck-0"}
    world.engine.observe_overdue(PodUid("stuck-0"))
    world.engine.forget_member(PodUid("healthy-0"))
    world.delete(PodUid("healthy-0"))
    deliver(world)
    world.planner.give_up_on(GangKey("ns", "stuck"))
    world.actions.clear()
    assert [type(action) for action in step(world)] == [ReleasePod]


def test_a_preemption_outlasts_its_lease_while_victims_take_their_time() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4).at(0))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    for _ in range(12):
        world.step()
        world.now += LEASE_SECONDS / 3
    states = {view.gang.name: view.state for view in world.engine.gangs()}
    assert states == {"low": GangState.BEING_PREEMPTED, "high": GangState.PREEMPTING}
