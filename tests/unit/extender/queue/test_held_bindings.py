"""Bindings that are held until the whole gang can be bound, one situation at a time."""

import pytest

from extender.queue.held_bindings import QUIET_SECONDS
from policy.submission import GangKey, PodUid
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    placement,
    release_all,
    run,
    submit,
)
from tests.support.queue.planner_world import PlannerWorld

GANG = GangKey("ns", "bert")


@pytest.fixture
def world() -> PlannerWorld:
    """Four nodes of four leaf cells."""
    return PlannerWorld(a_cluster("1 racks x 4 nodes x 4").promising("a", node=4).build())


def released(world: PlannerWorld, gang: GangBuilder) -> None:
    submit(world, gang)
    release_all(world)


def arrive(world: PlannerWorld, *uids: str) -> None:
    for uid in uids:
        world.schedule(PodUid(uid))


def test_members_are_bound_together_when_the_last_one_arrives(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4, 4, 4))
    arrive(world, "bert-0", "bert-1")
    world.step()
    assert (sorted(world.held), world.being_bound) == (["bert-0", "bert-1"], {})
    held = world.planner.held.reason(GANG)
    assert held is not None
    assert "once 3 members have passed kube-scheduler's checks (2 so far)" in held.text
    arrive(world, "bert-2")
    assert (world.held, len(world.being_bound)) == ({}, 3)
    assert world.planner.held.reason(GANG) is None


def test_a_pod_that_is_alone_is_not_held(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4))
    arrive(world, "bert-0")
    assert list(world.being_bound) == ["bert-0"]


def test_an_incremental_gang_starts_with_enough_members_and_the_others_follow(
    world: PlannerWorld,
) -> None:
    released(world, a_gang("bert").of(4, 4, 4, 4).at_least(2))
    arrive(world, "bert-3")
    assert world.being_bound == {}
    arrive(world, "bert-1")
    assert sorted(world.being_bound) == ["bert-1", "bert-3"]
    arrive(world, "bert-0")
    assert "bert-0" in world.being_bound


def test_a_member_that_replaces_another_one_is_not_held(world: PlannerWorld) -> None:
    submit(world, a_gang("bert").of(4, 4))
    run(world)
    assert is_whole(world, "bert")
    world.delete(PodUid("bert-0"))
    deliver(world)
    world.create(a_gang("bert").of(4, 4).member(0), size=2)
    deliver(world)
    release_all(world)
    arrive(world, "bert-0")
    assert "bert-0" in world.being_bound


def test_a_gang_that_stays_incomplete_at_binding_is_planned_elsewhere(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4, 4))
    silent = placement(world, "bert-1").node
    arrive(world, "bert-0")
    world.now += QUIET_SECONDS - 0.1
    world.step()
    assert list(world.held) == ["bert-0"]
    world.now += 0.1
    world.step()
    assert (world.held, world.being_bound) == ({}, {})
    assert silent not in {placement(world, uid).node for uid in ("bert-0", "bert-1")}
    run(world)
    assert is_whole(world, "bert")


def test_members_that_keep_arriving_are_waited_for_but_not_beyond_the_timeout(
    world: PlannerWorld,
) -> None:
    released(world, a_gang("bert").times(16, 1))
    for index in range(6):
        arrive(world, f"bert-{index}")
        world.now += QUIET_SECONDS - 2
        world.step()
        is_late = (index + 1) * (QUIET_SECONDS - 2) >= world.longest_seconds
        assert bool(world.held) is not is_late
    gang = world.planner._seen.find(GANG)
    assert gang is not None
    assert not gang.refused_nodes, "no node is to blame"
    world.longest_seconds = 200.0
    world.now += 10
    run(world)
    assert is_whole(world, "bert")


def test_members_of_a_large_gang_are_held_for_as_long_as_the_setting_allows(
    world: PlannerWorld,
) -> None:
    world.longest_seconds = 150.0
    released(world, a_gang("bert").times(16, 1))
    for index in range(16):
        assert not world.being_bound
        arrive(world, f"bert-{index}")
        world.now += QUIET_SECONDS - 2
        world.step()
    assert (world.held, len(world.being_bound)) == ({}, 16)


def test_a_gang_is_given_up_soon_where_kube_scheduler_finds_no_node(world: PlannerWorld) -> None:
    """It asks the extender only if another node passes its own checks."""
    released(world, a_gang("bert").of(4, 4))
    refused = placement(world, "bert-1").node
    world.change(world.pods[PodUid("bert-1")], is_refused=True)
    deliver(world)
    arrive(world, "bert-0")
    world.step()
    world.now += 3
    world.step()
    assert world.held == {}
    assert refused not in {placement(world, uid).node for uid in ("bert-0", "bert-1")}


def test_a_node_is_used_again_once_kube_scheduler_offers_it_to_the_refused_member(
    world: PlannerWorld,
) -> None:
    for node in sorted(world.nodes)[2:]:
        world.set_health(node, is_healthy=False)
    released(world, a_gang("bert").of(4, 4))
    refused = placement(world, "bert-1").node
    arrive(world, "bert-0")
    world.planner.refuse_node(PodUid("bert-1"), now=world.now)
    world.now += 3
    world.step()
    assert not world.engine.has_place(PodUid("bert-0"))
    world.planner.offer_nodes(PodUid("bert-0"), [refused])
    world.step()
    assert not world.engine.has_place(PodUid("bert-0")), "it was never refused there"
    world.planner.offer_nodes(PodUid("bert-1"), [refused])
    run(world)
    assert is_whole(world, "bert")


def test_no_member_is_bound_for_a_caller_that_has_gone(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4, 4))
    arrive(world, "bert-0")
    world.hang_up(PodUid("bert-0"))
    arrive(world, "bert-1")
    assert (list(world.held), world.being_bound) == (["bert-1"], {})
    arrive(world, "bert-0")
    assert len(world.being_bound) == 2


def test_a_gang_without_callers_is_not_blamed_on_its_nodes(world: PlannerWorld) -> None:
    """kube-scheduler was restarted."""
    released(world, a_gang("bert").of(4, 4))
    before = placement(world, "bert-1")
    arrive(world, "bert-0")
    world.hang_up(PodUid("bert-0"))
    world.now += QUIET_SECONDS
    world.step()
    assert placement(world, "bert-1") == before


def test_no_member_is_bound_when_another_one_has_lost_its_place(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4, 4))
    arrive(world, "bert-0")
    world.engine.forget_member(PodUid("bert-0"))  # by a preemption of kube-scheduler's
    arrive(world, "bert-1")
    assert (world.held, world.being_bound) == ({}, {})
    run(world)
    assert is_whole(world, "bert")


def test_no_member_is_bound_when_another_one_is_gone(world: PlannerWorld) -> None:
    released(world, a_gang("bert").of(4, 4))
    arrive(world, "bert-0")
    world.delete(PodUid("bert-1"))
    deliver(world)
    world.step()
    assert (list(world.held), world.being_bound) == (["bert-0"], {})


def test_members_that_are_held_are_bound_once_their_gang_has_begun(world: PlannerWorld) -> None:
    """The leader before has bound the other one."""
    released(world, a_gang("bert").of(4, 4))
    arrive(world, "bert-0")
    world.being_bound[PodUid("bert-1")] = placement(world, "bert-1")
    world.bind(PodUid("bert-1"))
    deliver(world)
    world.step()
    assert list(world.being_bound) == ["bert-0"]


def test_the_lease_of_a_held_gang_does_not_end(world: PlannerWorld) -> None:
    released(world, a_gang("bert").times(16, 1))
    for index in range(5):
        arrive(world, f"bert-{index}")
        world.now += QUIET_SECONDS - 2
        world.step()
    assert len(world.held) == 5
