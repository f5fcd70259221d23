"""Members that their controller creates only after others are Ready."""

from policy.submission import GangKey, PodUid
from tests.support.cells.builders import a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    nodes_of_gang,
    notices,
    run,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import LEASE_SECONDS, PlannerWorld

BERT = GangKey("ns", "bert")


def _create(world: PlannerWorld, *members: int, late: tuple[int, ...] = (4,)) -> None:
    gang = a_gang("bert").of(4, 4)
    for index in members:
        world.create(gang.member(index), size=2, late=late)
    deliver(world)


def test_a_gang_starts_without_its_late_members_and_holds_their_cells() -> None:
    world = world_of_two_vcs()
    _create(world, 0)
    run(world)
    assert is_whole(world, "bert")
    submit(world, a_gang("other").of(4))
    for _ in range(4):  # the leader may take long to be Ready
        world.now += LEASE_SECONDS / 2
        run(world)
    assert nodes_of_gang(world, "other") == [None], "VC a has two nodes: both are the gang's"
    view = world.engine.gang(BERT)
    assert view is not None
    assert len(view.held) == 1
    _create(world, 1)
    run(world)
    assert is_whole(world, "bert")
    assert len(nodes_of_gang(world, "bert")) == 2


def test_cells_of_late_members_that_never_come_are_free_after_half_an_hour() -> None:
    world = world_of_two_vcs()
    _create(world, 0)
    run(world)
    submit(world, a_gang("other").of(4))
    while world.now < 1790:
        world.now += LEASE_SECONDS / 2
        run(world)
    assert nodes_of_gang(world, "other") == [None]
    for _ in range(4):
        world.now += LEASE_SECONDS / 2
        run(world)
    assert is_whole(world, "other")
    assert is_whole(world, "bert")
    _create(world, 1)
    run(world)
    assert None in nodes_of_gang(world, "bert"), "it waits for room like any other"


def test_a_gang_that_lacks_room_for_its_late_members_does_not_start() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("other").of(4))
    run(world)
    _create(world, 0)
    assert "gang ns/bert needs" in notices(world)["bert"]
    run(world)
    assert nodes_of_gang(world, "bert") == [None]


def test_a_late_member_without_leaf_cells_holds_none() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("other").of(4))
    run(world)
    _create(world, 0, late=(0,))
    run(world)
    assert is_whole(world, "bert")


def test_late_members_are_awaited_once_those_before_them_are_done() -> None:
    """They would otherwise start one by one."""
    world, gang = world_of_two_vcs(), a_gang("bert").of(2, 2, 2)
    world.finish(BERT, 1)
    world.create(gang.member(1), size=3, late=(2, 2), workload="job")
    deliver(world)
    run(world)
    assert nodes_of_gang(world, "bert") == [None]
    world.create(gang.member(2), size=3, late=(2, 2), workload="job")
    deliver(world)
    run(world)
    assert is_whole(world, "bert")


def test_late_members_that_have_succeeded_leave_none_of_the_first_ones_out() -> None:
    """Of two and two members one late one is done; a gang of one of the first two is no gang."""
    world, gang = world_of_two_vcs(), a_gang("bert").of(1, 1, 1, 1)
    world.finish(BERT, 1, leaf_count=2)
    world.create(gang.member(0), size=4, late=(2, 2), workload="job")
    deliver(world)
    run(world)
    assert nodes_of_gang(world, "bert") == [None]
    world.create(gang.member(1), size=4, late=(2, 2), workload="job")
    deliver(world)
    run(world)
    assert is_whole(world, "bert")
    view = world.engine.gang(BERT)
    assert view is not None
    assert [len(place.leaf_cells) for place in view.held] == [2], "for the one that is not done"


def test_cells_of_late_members_are_free_once_the_gang_has_ended() -> None:
    world = world_of_two_vcs()
    _create(world, 0)
    run(world)
    world.delete(PodUid("bert-0"))
    deliver(world)
    for _ in range(3):
        world.now += LEASE_SECONDS
        run(world)
    assert world.engine.gang(BERT) is None


def test_a_gang_without_late_members_does_not_wait_behind_one_with_them() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("other").of(4))
    run(world)
    _create(world, 0)
    run(world)
    submit(world, a_gang("small").of(4))
    run(world)
    assert nodes_of_gang(world, "bert") == [None]
    assert is_whole(world, "small")
