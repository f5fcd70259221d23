"""The planner when the world does not do as it is asked."""

from dataclasses import replace

from extender.queue.model import EvictPod
from policy.submission import GangKey, NodeName, PodUid
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.driver import (
    deliver,
    is_released,
    is_whole,
    placement,
    release_all,
    run,
    step,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import LEASE_SECONDS, PlannerWorld


def test_pods_that_kube_scheduler_never_binds_hold_nobody_up() -> None:
    """They may lack a volume: a way full of them must not keep all others behind the gate."""
    world = PlannerWorld(a_cluster("1 racks x 25 nodes x 4").promising("a", node=25).build())
    submit(world, a_gang("bad").times(96, 1))
    release_all(world)
    submit(world, a_gang("good").of(4))
    release_all(world)
    assert not is_released(world, "good-0")
    world.now += 10
    release_all(world)
    assert is_released(world, "good-0")


def test_pods_that_cannot_be_released_hold_nobody_up() -> None:
    """The API server may refuse whatever is written to them, again and again."""
    world = PlannerWorld(a_cluster("1 racks x 25 nodes x 4").promising("a", node=25).build())
    submit(world, a_gang("bad").times(96, 1))
    world.step()
    while world.actions:
        world.perform(0, is_done=False, is_told_done=False)
    world.step()
    submit(world, a_gang("good").of(4))
    world.step()
    assert [action.uid for action in world.actions] == ["good-0"]


def test_who_did_not_use_its_lease_waits_behind_its_equals() -> None:
    """It may lack something else than leaf cells, and would keep them from the next for ever."""
    world = world_of_two_vcs()
    submit(world, a_gang("bad").of(4, 4))
    release_all(world)
    world.now += 1
    submit(world, a_gang("good").of(4, 4))
    world.now += LEASE_SECONDS
    release_all(world)
    assert is_released(world, "good-0")
    world.now += 1
    submit(world, a_gang("late").of(4, 4))
    for uid in ("good-0", "good-1"):
        world.delete(PodUid(uid))
    deliver(world)
    step(world)
    assert world.engine.has_place(PodUid("bad-0")), "it comes before those that came later"


def test_nothing_is_kept_of_a_preemptor_that_went_away() -> None:
    """Its lease would be renewed, and that written down, for as long as the leader lives."""
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    assert [type(action) for action in step(world)] == [EvictPod, EvictPod]
    for uid in ("high-0", "high-1"):
        world.delete(PodUid(uid))
    deliver(world)
    world.step()
    renewed: list[GangKey] = []

    def renew(key: GangKey, *, now: float) -> None:
        renewed.append(key)

    world.cells.renew = renew
    world.now += 10
    world.step()
    assert renewed == []


def test_an_end_that_failed_is_tried_again_though_nothing_else_happens() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4).at(0))
    run(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    world.step()
    while world.actions:
        world.perform(0, is_done=False, is_told_done=False)
    world.now += 1
    assert sorted(end.uid for end in step(world) if isinstance(end, EvictPod)) == ["low-0", "low-1"]


def test_a_standby_keeps_nothing_of_gangs_that_are_gone() -> None:
    """It makes no steps, for months perhaps, and hears of every gang."""
    world = world_of_two_vcs()
    before = len(list(world.planner._seen))
    for name in ("short", "ended"):
        submit(world, a_gang(name).of(4))
    pod = world.pods[PodUid("ended-0")]
    world.change(pod, is_ending=True)
    deliver(world)
    for uid in ("short-0", "ended-0"):
        world.delete(PodUid(uid))
    deliver(world)
    assert (len(list(world.planner._seen)), world.planner._seen.take_changed()) == (before, [])


def _bind_one_on_each_node(world: PlannerWorld) -> None:
    """Let kube-scheduler take one pod on a node, for want of CPU perhaps, and refuse the others."""
    taken = {pod.seen_as.node for pod in world.pods.values()}
    for uid, pod in sorted(world.pods.items()):
        place = world.engine.placement(uid)
        if pod.seen_as.node is not None or place is None:
            continue
        if place.node in taken:
            world.planner.refuse_node(uid, now=world.now)
        else:
            taken.add(place.node)
            world.being_bound[uid] = place
            world.bind(uid)
    deliver(world)


def test_a_large_gang_is_whole_at_last_though_each_node_takes_one_member() -> None:
    world = PlannerWorld(a_cluster("1 racks x 20 nodes x 8").promising("a", node=20).build())
    submit(world, a_gang("wide").times(20, 1))
    for _ in range(60):
        release_all(world)
        _bind_one_on_each_node(world)
        world.now += 5
    assert is_whole(world, "wide")


def _refuse_for(world: PlannerWorld, uid: str, *, usable: str, seconds: int) -> bool:
    """Let kube-scheduler refuse a pod all nodes but one; whether it was placed there in time."""
    end = world.now + seconds
    while world.now < end:
        release_all(world)
        place = world.engine.placement(PodUid(uid))
        if place is not None and place.node == usable:
            return True
        world.planner.refuse_node(PodUid(uid), now=world.now)
        world.now += 3
    return False


def test_the_last_of_many_nodes_is_found_though_all_others_are_refused() -> None:
    """Their CPU is used up: it takes more than a minute to find that out of all of them."""
    world = PlannerWorld(a_cluster("1 racks x 40 nodes x 8").promising("a", node=40).build())
    submit(world, a_gang("picky").of(1))
    assert _refuse_for(world, "picky-0", usable="r0/n39", seconds=600)


def test_who_has_no_other_node_does_not_wait_for_long() -> None:
    world = PlannerWorld(a_cluster("1 racks x 1 nodes x 8").promising("a", node=1).build())
    submit(world, a_gang("picky").of(1))
    assert not _refuse_for(world, "picky-0", usable="", seconds=600)
    assert _refuse_for(world, "picky-0", usable="r0/n0", seconds=63)


def test_a_victim_that_does_not_run_yet_loses_its_place_and_not_its_pods() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("low").of(4, 4))
    release_all(world)
    submit(world, a_gang("high").of(4, 4).at(5))
    run(world)
    assert is_whole(world, "high")
    assert [uid for uid in world.pods if uid.startswith("low")] == ["low-0", "low-1"]
    for uid in ("high-0", "high-1"):
        world.delete(PodUid(uid))
    deliver(world)
    run(world)
    assert is_whole(world, "low")


def test_a_late_member_that_fits_does_not_wait_for_one_that_does_not() -> None:
    world = world_of_two_vcs()
    gang = a_gang("bert").of(4, 2, 2, 1).at_least(1)
    for request in [*gang.members()[:2], gang.member(3)]:
        world.create(request, size=4)
    submit(world, a_gang("other").of(1))
    run(world)
    world.delete(PodUid("bert-3"))
    deliver(world)
    world.create(gang.member(2), size=4)
    world.create(replace(gang.member(3), member=PodUid("bert-4")), size=4)
    deliver(world)
    run(world)
    assert world.pods[PodUid("bert-4")].seen_as.node is not None


def test_no_news_wakes_nobody() -> None:
    """Who does not fit would be looked at again and again, and those behind it never."""
    world = world_of_two_vcs()
    submit(world, a_gang("run").of(4, 4))
    run(world)
    submit(world, a_gang("wait").of(4, 4))
    world.step()
    world.planner.expire([])
    world.planner.unseat([])
    before = world.cells.asked
    world.step()
    assert world.cells.asked == before


def test_a_gang_may_be_refused_all_its_nodes_at_once() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4))
    release_all(world)
    before = [placement(world, uid).node for uid in ("bert-0", "bert-1")]
    for uid in ("bert-0", "bert-1"):
        world.planner.refuse_node(PodUid(uid), now=world.now)
    world.now += 3
    world.step()
    after = [placement(world, uid).node for uid in ("bert-0", "bert-1")]
    assert before[0] not in after


def test_an_old_refusal_takes_nothing_from_who_is_being_bound() -> None:
    """The node was offered again since: its leaf cells would be given to somebody else."""
    world = PlannerWorld(a_cluster("1 racks x 3 nodes x 4").promising("a", node=3).build())
    submit(world, a_gang("bert").of(4, 4))
    release_all(world)
    before = [placement(world, uid) for uid in ("bert-0", "bert-1")]
    world.planner.refuse_node(PodUid("bert-0"), now=world.now)
    for uid in ("bert-0", "bert-1"):
        world.schedule(PodUid(uid))
    world.now += 3
    world.step()
    assert [placement(world, uid) for uid in ("bert-0", "bert-1")] == before


def test_an_old_refusal_moves_nobody_whose_sibling_is_being_bound() -> None:
    world = PlannerWorld(a_cluster("1 racks x 3 nodes x 4").promising("a", node=3).build())
    submit(world, a_gang("bert").of(4, 4))
    release_all(world)
    before = placement(world, "bert-1")
    world.planner.refuse_node(PodUid("bert-0"), now=world.now)
    world.being_bound[PodUid("bert-1")] = before
    world.now += 3
    world.step()
    assert placement(world, "bert-1") == before


def a_gang_whose_late_member_finds_its_place_taken() -> PlannerWorld:
    """A member was lost, one of lower priority took its place, and its replacement wants it."""
    world = PlannerWorld(a_cluster("1 racks x 2 nodes x 4").promising("a", node=2).build())
    bert = a_gang("bert").of(4, 4).at(5)
    submit(world, bert)
    run(world)
    world.delete(PodUid("bert-1"))
    deliver(world)
    submit(world, a_gang("low").of(4))
    run(world)
    world.create(replace(bert.member(1), member=PodUid("bert-2")), size=2)
    deliver(world)
    return world


def test_a_late_member_ends_who_took_its_place() -> None:
    """Else its gang would run by half for as long as the other likes."""
    world = a_gang_whose_late_member_finds_its_place_taken()
    run(world)
    assert PodUid("low-0") not in world.pods
    assert is_whole(world, "bert")


def test_nobody_is_ended_for_a_late_member_that_went_away() -> None:
    world = a_gang_whose_late_member_finds_its_place_taken()
    assert [type(action) for action in step(world)] == [EvictPod]
    world.delete(PodUid("bert-2"))
    deliver(world)
    world.perform(0, is_done=True, is_told_done=True)
    world.now += 10
    assert step(world) == []
    assert PodUid("low-0") in world.pods


def test_who_is_being_bound_keeps_its_place_when_a_sibling_vanishes() -> None:
    """The feed may not say yet that it was released, and kube-scheduler was quick."""
    world = world_of_two_vcs()
    submit(world, a_gang("bert").of(4, 4))
    world.step()
    while world.actions:
        world.perform(0, is_done=True, is_told_done=True)
    world.undelivered.clear()
    world.being_bound[PodUid("bert-0")] = placement(world, "bert-0")
    world.delete(PodUid("bert-1"))
    deliver(world)
    world.step()
    assert world.engine.has_place(PodUid("bert-0"))


def test_a_node_that_was_lost_is_used_again_as_soon_as_it_is_back() -> None:
    """A kubelet that restarts, a node that is cordoned for a moment: nobody waits a minute."""
    world = PlannerWorld(a_cluster("1 racks x 1 nodes x 4").promising("a", node=1).build())
    submit(world, a_gang("bert").of(4))
    release_all(world)
    node = placement(world, "bert-0").node
    world.set_health(node, is_healthy=False)
    world.step()
    assert not world.engine.has_place(PodUid("bert-0"))
    world.set_health(node, is_healthy=True)
    run(world)
    assert is_whole(world, "bert")


def test_a_refused_node_that_changes_is_tried_again_at_once() -> None:
    world = PlannerWorld(a_cluster("1 racks x 1 nodes x 8").promising("a", node=1).build())
    submit(world, a_gang("bert").of(8))
    assert not _refuse_for(world, "bert-0", usable="none", seconds=9)
    release_all(world)
    assert world.engine.placement(PodUid("bert-0")) is None, "it is left out for a minute"
    world.planner.reopen_node(NodeName("r0/n0"))
    release_all(world)
    assert placement(world, "bert-0").node == "r0/n0"
