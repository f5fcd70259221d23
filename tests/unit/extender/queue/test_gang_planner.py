"""The planner, one situation at a time."""

from dataclasses import replace

import pytest

from extender.cells.views.listings import run_to_end
from extender.queue.model import NominatePod, ReleasePod
from policy.submission import NodeName, PodUid
from tests.support.cells.builders import a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    nodes_of_gang,
    notices,
    placement,
    run,
    step,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import LEASE_SECONDS, PlannerWorld


def test_a_gang_is_left_alone_until_all_members_exist() -> None:
    world = world_of_two_vcs()
    gang = a_gang("bert").of(4, 4)
    submit(world, gang, missing=1)
    assert step(world) == []
    world.create(gang.member(0), size=2)
    deliver(world)
    assert [type(action) for action in step(world)] == [ReleasePod, ReleasePod]


def test_who_waits_long_for_its_members_is_told_once() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4), missing=1)
    assert notices(world) == {}
    world.now += 5
    assert notices(world) == {
        "bert": "gang ns/bert is incomplete; scheduled once all members exist (1 of 2 so far); "
        "check `cellgate.io/gang-size`"
    }
    assert notices(world) == {}
    world.create(a_gang("bert").of(4, 4).member(0), size=2)
    deliver(world)
    assert notices(world) == {"bert": ""}


def test_a_gang_that_is_gone_before_it_was_told_is_told_nothing() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4), missing=1)
    world.step()
    world.delete(PodUid("bert-1"))
    deliver(world)
    world.now += 5
    assert notices(world) == {}


def test_an_incremental_gang_is_looked_at_with_its_minimum() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4).at_least(1), missing=1)
    run(world)
    assert len(nodes_of_gang(world, "bert")) == 1
    assert is_whole(world, "bert")


def test_a_gang_of_mixed_sizes_is_planned_as_it_is() -> None:
    """Labels tell the size of a gang, not its members' sizes: only the pods together do."""
    world = world_of_two_vcs()
    for index, size in enumerate([4, 2, 1]):
        request = replace(
            a_gang("bert").times(3, size).member(),
            member=PodUid(f"bert-{index}"),
        )
        world.create(request, size=3)
    deliver(world)
    run(world)
    assert is_whole(world, "bert")


def test_members_that_disagree_are_told_so() -> None:
    world = world_of_two_vcs()
    world.create(a_gang("bert").of(1, 1).member(0), size=2)
    world.create(a_gang("bert").of(1, 1).in_vc("b").member(1), size=2)
    deliver(world)
    assert notices(world) == {
        "bert": "a member of gang ns/bert has VC b, but the first member has VC a; use the same "
        "values for all members, or another gang name for this one"
    }
    assert world.actions == []


def test_surplus_members_stay_behind_the_gate() -> None:
    world = world_of_two_vcs()
    gang = a_gang("bert").of(1, 1, 1)
    for request in gang.members():
        world.create(request, size=2)
    deliver(world)
    assert len(step(world)) == 2


def test_the_owner_of_a_surplus_member_is_told_until_it_starts() -> None:
    world = world_of_two_vcs()
    for request in a_gang("bert").of(1, 1, 1).members():
        world.create(request, size=2)
    deliver(world)
    assert notices(world) == {
        "bert": "gang ns/bert already has all of its 2 members with 1 leaf cell; starts once a "
        "member has ended; check `cellgate.io/gang-size`"
    }
    run(world)
    assert notices(world) == {}, "once"
    world.delete(PodUid("bert-0"))
    deliver(world)
    assert notices(world) == {"bert": ""}


def test_higher_priorities_come_first_then_the_older() -> None:
    world = world_of_two_vcs()
    for name, priority in (("old", 0), ("young", 0), ("high", 5)):
        submit(world, a_gang(name).of(4, 4).at(priority))
        world.now += 1
    placed = {action.uid for action in step(world)}
    assert placed == {"high-0", "high-1"}


def test_who_waits_is_ordered_by_the_priority_that_its_class_has_now() -> None:
    world = world_of_two_vcs()
    for name, priority in (("old", 0), ("high", 5)):
        submit(world, a_gang(name).of(4, 4).at(priority))
    now = {PodUid(f"old-{index}"): 9 for index in range(2)}
    run_to_end(world.planner.rerank(now.get))
    placed = {action.uid for action in step(world)}
    assert placed == {"old-0", "old-1"}


def test_a_failed_release_is_tried_again_after_a_pause() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(1))
    step(world)
    world.perform(0, is_done=False, is_told_done=False)
    assert step(world) == []
    world.now += 0.2
    assert [action.uid for action in step(world)] == ["bert-0"]


def test_a_release_that_was_done_is_not_asked_for_twice() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(1))
    step(world)
    world.perform(0, is_done=True, is_told_done=True)
    assert step(world) == []
    deliver(world)
    assert step(world) == []


def test_a_nomination_that_kube_scheduler_dropped_is_given_again() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(1))
    step(world)
    world.perform(0, is_done=True, is_told_done=True)
    deliver(world)
    world.change(world.pods[PodUid("bert-0")], nominated=None)
    deliver(world)
    node = placement(world, "bert-0").node
    assert step(world) == [NominatePod(uid=PodUid("bert-0"), node=node)]


@pytest.mark.parametrize("missing", [0, 1])
def test_a_nomination_is_taken_from_a_pod_that_has_no_place(missing: int) -> None:
    """A leader that died between its two writes leaves one, and kube-scheduler respects it."""
    world = world_of_two_vcs()
    submit(world, a_gang("first").of(4, 4))
    run(world)
    submit(world, a_gang("next").of(4, 4), missing=missing)
    world.change(world.pods[PodUid("next-1")], nominated=NodeName("n0"))
    deliver(world)
    assert step(world) == [NominatePod(uid=PodUid("next-1"), node=None)]
    world.perform(0, is_done=True, is_told_done=True)
    deliver(world)
    assert step(world) == []


def test_a_lease_that_is_not_used_in_time_is_planned_again() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4))
    step(world)
    world.perform(0, is_done=True, is_told_done=True)
    deliver(world)
    world.actions.clear()
    world.now += LEASE_SECONDS
    step(world)
    assert all(world.engine.placement(uid) for uid in world.pods)


def test_a_half_begun_gang_keeps_its_places_until_it_is_whole() -> None:
    world = world_of_two_vcs()
    rival = a_gang("rival").of(2, 2)
    submit(world, rival, missing=1)
    world.now += 1
    submit(world, a_gang("bert").of(4, 4))
    step(world)
    world.perform(0, is_done=True, is_told_done=True)
    deliver(world)
    released = next(uid for uid, pod in world.pods.items() if pod.seen_as.is_released)
    world.being_bound[released] = placement(world, released)  # by an earlier leader
    world.bind(released)
    deliver(world)
    world.create(rival.member(0), size=2)
    deliver(world)
    for _ in range(8):
        world.now += LEASE_SECONDS / 3
        world.step()
    assert all(world.engine.placement(uid) for uid in world.pods if uid.startswith("bert"))


def test_what_a_lease_that_ended_leaves_is_given_to_who_waits() -> None:
    world = world_of_two_vcs()
    for request in a_gang("never-gated").of(4, 4).members():
        decision = world.engine.plan(request, candidate_nodes=world.nodes)
        world.engine.apply(decision, now=world.now)
    submit(world, a_gang("bert").of(4, 4))
    assert step(world) == []
    world.now += LEASE_SECONDS
    assert [action.uid for action in step(world)] == ["bert-0", "bert-1"]


def test_a_node_that_kube_scheduler_keeps_refusing_is_given_up() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4))
    _run_release(world)
    refused = placement(world, "bert-0").node
    world.planner.refuse_node(PodUid("bert-0"), now=world.now)
    world.step()
    assert placement(world, "bert-0").node == refused, "one refusal means little"
    world.now += 3
    world.step()
    assert placement(world, "bert-0").node != refused


def _run_release(world: PlannerWorld) -> None:
    world.step()
    while world.actions:
        world.perform(0, is_done=True, is_told_done=True)
    deliver(world)


def test_members_that_vanish_before_the_release_give_everything_back() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4))
    world.step()
    for index in range(len(world.actions)):
        world.perform(0, is_done=False, is_told_done=False)
        assert index < 2
    world.delete(PodUid("bert-0"))
    deliver(world)
    world.step()
    assert world.engine.gangs() == []


def test_the_next_starts_when_one_ends() -> None:
    world = world_of_two_vcs()
    for name in ("first", "second"):
        submit(world, a_gang(name).of(4, 4))
        world.now += 1
    run(world)
    assert is_whole(world, "first")
    assert not is_whole(world, "second")
    for uid in ("first-0", "first-1"):
        world.delete(PodUid(uid))
    deliver(world)
    run(world)
    assert is_whole(world, "second")


def test_a_new_leader_goes_on_where_the_old_one_died() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4))
    world.step()
    world.perform(0, is_done=True, is_told_done=True)
    released = next(pod for pod in world.pods.values() if pod.seen_as.is_released)
    before = released.seen_as.placement
    world.lead()
    run(world)
    assert is_whole(world, "bert")
    assert released.seen_as.placement == before


def test_a_new_leader_leaves_places_as_they_were_told() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("early").of(4))
    run(world)
    submit(world, a_gang("bert").of(4))
    _run_release(world)
    told = placement(world, "bert-0")
    world.delete(PodUid("early-0"))
    deliver(world)
    world.lead()
    world.step()
    now = placement(world, "bert-0")
    assert (now.node, now.leaf_cells) == (told.node, told.leaf_cells)


def test_a_gang_whose_members_are_not_as_announced_does_not_start_by_half() -> None:
    world = world_of_two_vcs()
    announced = a_gang("bert").of(4, 2)
    world.create(announced.member(0), size=2)
    other = replace(announced.member(0), member=PodUid("bert-1"))
    world.create(other, size=2)
    deliver(world)
    assert step(world) == []
    assert world.engine.gangs() == []


def test_the_numbers_of_a_reason_are_told_when_they_change() -> None:
    world = world_of_two_vcs()
    for name in ("one", "two"):
        submit(world, a_gang(name).of(4))
    run(world)
    submit(world, a_gang("next").of(4, 4))
    assert "0 of the 8 leaf cells promised to VC a are unused" in notices(world)["next"]
    world.delete(PodUid("one-0"))
    deliver(world)
    assert "4 of the 8 leaf cells promised to VC a are unused" in notices(world)["next"]


def test_the_number_of_members_is_told_when_it_changes() -> None:
    world = world_of_two_vcs()
    gang = a_gang("bert").of(1, 1, 1)
    submit(world, gang, missing=2)
    world.step()
    world.now += 5
    assert "(1 of 3 so far)" in notices(world)["bert"]
    world.create(gang.member(1), size=3)
    deliver(world)
    assert "(2 of 3 so far)" in notices(world)["bert"]
    assert notices(world) == {}


def test_a_reason_is_told_once() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").of(4, 4))
    run(world)
    submit(world, a_gang("next").of(4, 4))
    assert list(notices(world)) == ["next"]
    world.planner.wake()
    assert notices(world) == {}
    for index in range(2):
        world.delete(PodUid(f"first-{index}"))
    deliver(world)
    assert notices(world) == {"next": ""}
