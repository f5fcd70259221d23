"""Large gangs are placed where they fit: the search does not stop because of their size."""

import pytest

from extender.cells.model import Place, Wait
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld


def racks_and_nodes() -> EngineWorld:
    """VC a has 16 racks of 16 nodes and 16 single nodes; no pod runs."""
    return EngineWorld(a_cluster("20 racks x 16 nodes x 8").promising("a", rack=16, node=16))


@pytest.mark.parametrize(
    "sizes",
    [
        (1, *(8,) * 255),
        (8,) * 270,
        (1, 2, 3, 4, 5, 6, 7, 8) * 50,
        (3, 5) * 260,
    ],
    ids=["a launcher and workers", "more than its racks hold", "many sizes", "pairs of two sizes"],
)
def test_an_empty_cluster_holds_a_large_gang(sizes: tuple[int, ...]) -> None:
    decision = racks_and_nodes().ask(a_gang("g").of(*sizes))

    assert isinstance(decision, Place)
    assert sorted(len(seat.leaves) for seat in decision.seats) == sorted(sizes)


def test_of_a_gang_with_one_member_too_many_all_others_start() -> None:
    world = EngineWorld(a_cluster("16 racks x 16 nodes x 8").promising("a", rack=16))

    decision = world.ask(a_gang("g").of(1, *(8,) * 256).at_least(1))

    assert isinstance(decision, Place)
    assert len(decision.seats) == 256


def test_members_of_a_mixed_gang_lie_near_each_other() -> None:
    """The small member could be in a tighter node of another rack."""
    world = EngineWorld(a_cluster("4 racks x 4 nodes x 8").promising("a", rack=4))
    world.place(a_gang("before").of(7))

    decision = world.ask(a_gang("g").of(*(8,) * 3, 7, 1))

    assert isinstance(decision, Place)
    racks = {placement.node.split("/")[0] for placement in (decision.placement, *decision.others)}
    assert len(racks) == 1


def test_a_few_open_nodes_are_searched_to_the_end_in_a_large_cluster() -> None:
    """Rooms of 4 and 5 hold members of 3, 2, 2, 2 in one way only, and best fit misses it."""
    world = EngineWorld(a_cluster("5 racks x 16 nodes x 8").promising("a", node=80))
    for node, taken in zip(world.nodes, (4, 3, *(8,) * 78), strict=True):
        world.run(a_gang(f"on-{node}").of(taken).at(9), (node, tuple(range(taken))))

    assert isinstance(world.ask(a_gang("g").of(2, 2, 3, 2)), Place)
    assert isinstance(world.ask(a_gang("g").of(3, 3, 3)), Wait)
