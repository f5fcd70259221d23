"""Members that have succeeded, members that are made anew, and gangs that start in part."""

from dataclasses import replace

from policy.submission import GangKey, PodUid
from tests.support.cells.builders import GangBuilder, a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    nodes_of_gang,
    notices,
    run,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import PlannerWorld

BERT = GangKey("ns", "bert")


def _create(world: PlannerWorld, gang: GangBuilder, *members: int, job: str = "job") -> None:
    for index in members:
        rank = ((index, ""),)
        size = len(gang.members())
        world.create(gang.member(index), size=size, workload=job, rank=rank)
    deliver(world)


def test_the_last_retry_of_a_job_starts() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(4, 4)
    _create(world, gang, 1)
    run(world)
    assert nodes_of_gang(world, "bert") == [None]
    world.finish(BERT, 1)
    run(world)
    assert is_whole(world, "bert")
    view = world.engine.gang(BERT)
    assert view is not None
    assert (view.size, view.held) == (1, ()), "nothing is leased for the member that is done"


def test_what_another_workload_has_finished_does_not_count() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(4, 4)
    _create(world, gang, 1)
    world.planner.note_finished(BERT, "an earlier job", {1: 1})
    world.planner.note_finished(BERT, "", {1: 1})
    run(world)
    assert nodes_of_gang(world, "bert") == [None]


def test_a_finished_pod_that_is_deleted_counts_no_more() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(4, 4)
    world.finish(BERT, 1)
    world.finish(BERT, 0)
    _create(world, gang, 1)
    run(world)
    assert nodes_of_gang(world, "bert") == [None]


def test_a_partly_finished_gang_that_lost_a_member_since_goes_on() -> None:
    """First with all sizes in the engine, then after a new leader has read them from pods."""
    for is_new_leader in (False, True):
        world, gang = world_of_two_vcs(), a_gang("bert").of(2, 2, 2)
        _create(world, gang, 0, 1, 2)
        run(world)
        world.delete(PodUid("bert-0"))
        world.finish(BERT, 1)
        world.delete(PodUid("bert-1"))
        deliver(world)
        if is_new_leader:
            world.lead()
            world.finish(BERT, 1)
        _create(world, gang, 1)
        run(world)
        assert len(nodes_of_gang(world, "bert")) == 2
        assert is_whole(world, "bert")


def test_a_workload_with_more_pods_than_members_runs_them_set_by_set() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(4, 4)
    world.planner.note_finished(BERT, "job", {1: 2})
    _create(world, gang, 0)
    run(world)
    assert nodes_of_gang(world, "bert") == [None], "the next set of two is not there yet"
    _create(world, gang, 1)
    run(world)
    assert is_whole(world, "bert")


def test_a_minimum_that_is_more_than_what_is_left_is_no_reason_to_wait() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(1, 1, 1).at_least(2)
    world.planner.note_finished(BERT, "job", {1: 2})
    _create(world, gang, 2)
    run(world)
    assert is_whole(world, "bert")


def test_members_that_have_succeeded_count_towards_the_minimum() -> None:
    """Two of four have succeeded, and one that failed is not created again yet."""
    world, gang = world_of_two_vcs(), a_gang("bert").of(1, 1, 1, 1).at_least(2)
    world.finish(BERT, 2)
    _create(world, gang, 2)
    run(world)
    assert is_whole(world, "bert")
    _create(world, gang, 3)
    run(world)
    assert len(nodes_of_gang(world, "bert")) == 2
    assert is_whole(world, "bert")


def test_a_gang_made_anew_waits_for_its_old_pods_and_says_so() -> None:
    world, gang = world_of_two_vcs(), a_gang("bert").of(4, 4)
    _create(world, gang, 0, 1)
    run(world)
    for index in (0, 1):
        old = world.pods[PodUid(f"bert-{index}")]
        world.engine.observe_ending(old.uid)
        world.change(old, is_ending=True)
    deliver(world)
    for number in (8, 9):
        world.create(replace(gang.member(0), member=PodUid(f"bert-{number}")), size=2)
    deliver(world)
    assert notices(world) == {
        "bert": "gang ns/bert still has 2 earlier pods that are terminating; starts once they "
        "have ended"
    }
    world.delete(PodUid("bert-0"))
    deliver(world)
    run(world)
    running = [uid for uid, pod in world.pods.items() if pod.seen_as.node is not None]
    assert running == ["bert-1"], "whole or not at all"
    world.delete(PodUid("bert-1"))
    deliver(world)
    run(world)
    assert is_whole(world, "bert")


def test_the_lowest_ranks_of_a_gang_start_first_and_those_that_wait_are_told() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("other").of(4))
    run(world)
    gang = a_gang("bert").of(4, 4, 4).at_least(1)
    _create(world, gang, 2, 1, 0)
    step = world.planner.step(now=world.now)
    world.actions += step.actions
    notice = step.notices[BERT]
    assert notice is not None
    assert notice.uid == "bert-1"
    run(world)
    running = [uid for uid, pod in world.pods.items() if pod.seen_as.node is not None]
    assert sorted(running) == ["bert-0", "other-0"]


ALL = ("r0/n0", "r0/n1", "r1/n0", "r1/n1")


def test_a_retry_avoids_a_node_on_which_its_workload_failed_if_others_suit() -> None:
    for count, node in enumerate(ALL):
        world = world_of_two_vcs()
        world.create(a_gang("bert").of(4).member(), size=1, avoids=ALL[:count])
        deliver(world)
        run(world)
        assert nodes_of_gang(world, "bert") == [node]


def test_a_retry_uses_a_node_on_which_it_failed_if_no_other_has_room() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("other").of(4))
    run(world)
    assert nodes_of_gang(world, "other") == ["r0/n0"]
    world.create(a_gang("bert").of(4).member(), size=1, avoids=ALL[1:])
    deliver(world)
    run(world)
    assert nodes_of_gang(world, "bert") == ["r0/n1"]
