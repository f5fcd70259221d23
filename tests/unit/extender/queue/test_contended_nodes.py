"""Pods that keep each other off a node, since kube-scheduler keeps it free for all of them."""

from extender.queue.model import NominatePod
from policy.submission import PodUid
from tests.support.cells.builders import a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    placement,
    release_all,
    run,
    step,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import PlannerWorld


def _refuse(world: PlannerWorld, *uids: str) -> None:
    """Let kube-scheduler say of pods that may not preempt that no node is for them."""
    for uid in uids:
        world.change(world.pods[PodUid(uid)], is_refused=True)
    deliver(world)


def test_pods_do_not_keep_each_other_off_a_node() -> None:
    """There may be CPU for one of them; nominated, each would be refused for the other's sake."""
    world = world_of_two_vcs()
    submit(world, a_gang("one").of(1))
    submit(world, a_gang("two").of(1))
    release_all(world)
    assert placement(world, "one-0").node == placement(world, "two-0").node
    _refuse(world, "one-0")
    assert step(world) == [], "nobody else is refused there"
    _refuse(world, "two-0")
    wanted = [NominatePod(uid=PodUid(uid), node=None) for uid in ("one-0", "two-0")]
    assert step(world) == wanted
    assert all(map(world.planner.is_wanted, wanted))
    run(world)
    assert is_whole(world, "one")
    assert is_whole(world, "two")


def test_who_contends_for_a_node_no_more_is_nominated_again() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("one").of(1))
    submit(world, a_gang("two").of(1))
    release_all(world)
    _refuse(world, "one-0", "two-0")
    release_all(world)
    world.delete(PodUid("two-0"))
    deliver(world)
    node = placement(world, "one-0").node
    assert step(world) == [NominatePod(uid=PodUid("one-0"), node=node)]
