"""Members of one gang that need different nodes: each is placed by its own need."""

from policy.submission import GangKey, PodUid
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.driver import deliver, is_whole, placement, release_all, run
from tests.support.queue.room_world import RoomWorld, a_need

EAST, WEST = a_need(zone="east"), a_need(zone="west")


def a_world(*, nodes: int = 4) -> RoomWorld:
    """Nodes n0, n2, … are in the east, the others in the west."""
    return RoomWorld(a_cluster(f"1 racks x {nodes} nodes x 4").promising("a", node=nodes).build())


def submit(world: RoomWorld, name: str, needs: list[object], *, size: int = 4) -> None:
    gang = a_gang(name).times(len(needs), size)
    for request, need in zip(gang.members(), needs, strict=True):
        world.create(request, size=len(needs), node_wish=need)
    deliver(world)


def zones(world: RoomWorld, name: str, count: int) -> list[str]:
    return [world.zones[placement(world, f"{name}-{index}").node] for index in range(count)]


def test_each_member_is_placed_on_a_node_that_suits_it() -> None:
    world = a_world()
    submit(world, "bert", [WEST, EAST, WEST, EAST])
    release_all(world)
    assert zones(world, "bert", 4) == ["west", "east", "west", "east"]
    run(world)
    assert is_whole(world, "bert")


def test_a_member_that_suits_all_nodes_leaves_the_others_theirs() -> None:
    world = a_world(nodes=3)  # two in the east, one in the west
    submit(world, "bert", [a_need(), WEST, EAST])
    release_all(world)
    assert zones(world, "bert", 3) == ["east", "west", "east"]


def test_a_gang_of_which_one_member_suits_no_node_with_room_waits_whole() -> None:
    world = a_world(nodes=2)
    submit(world, "old", [WEST])
    run(world)
    submit(world, "bert", [EAST, WEST])
    release_all(world)
    assert world.engine.gang(GangKey("ns", "bert")) is None
    world.delete(PodUid("old-0"))
    run(world)
    assert is_whole(world, "bert")


def test_members_with_different_cpus_share_no_node_that_is_too_small_for_both() -> None:
    world = a_world(nodes=2)
    submit(world, "bert", [a_need(cpus=5), a_need(cpus=6)], size=1)
    run(world)
    assert is_whole(world, "bert")
    assert len({placement(world, f"bert-{index}").node for index in range(2)}) == 2


def test_a_member_that_is_replaced_needs_only_its_own_nodes() -> None:
    world = a_world()
    submit(world, "bert", [EAST, WEST])
    run(world)
    lost = world.pods[PodUid("bert-1")].seen_as
    world.delete(PodUid("bert-1"))
    deliver(world)
    world.create(lost.request, size=2, node_wish=WEST)
    deliver(world)
    run(world)
    assert is_whole(world, "bert")
    assert zones(world, "bert", 2) == ["east", "west"]
