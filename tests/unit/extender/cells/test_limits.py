"""Limits: how many idle leaf cells a gang may use on some nodes, whatever else is idle there."""

import pytest

from extender.cells.model import Decision, Place, Wait
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld

PRIORITIES = pytest.mark.parametrize("priority", [-1, 0], ids=["opportunistic", "guaranteed"])


def _world() -> EngineWorld:
    return EngineWorld(a_cluster("2 racks x 2 nodes x 8").promising("a", node=4))


def _plan(world: EngineWorld, *sizes: int, priority: int, limits: tuple[int, ...] = ()) -> Decision:
    decision = world.engine.plan(
        a_gang("bert").of(*sizes).at(priority).member(0),
        candidate_nodes=dict.fromkeys(world.nodes),
        limits=dict(zip(world.nodes, limits, strict=False)),
    )
    check(world.engine)
    return decision


@PRIORITIES
@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (4, 2, 1)], ids=["equal", "unequal"])
def test_members_spread_as_far_as_limits_ask_for(sizes: tuple[int, ...], priority: int) -> None:
    world = _world()
    free = _plan(world, *sizes, priority=priority)
    assert isinstance(free, Place)
    assert len({place.node for place in (free.placement, *free.others)}) == 1
    limited = _plan(world, *sizes, priority=priority, limits=(4, 4, 4, 4))
    assert isinstance(limited, Place)
    used = dict.fromkeys(world.nodes, 0)
    for place in (limited.placement, *limited.others):
        used[place.node] += len(place.leaf_cells)
    assert sum(used.values()) == sum(sizes)
    assert max(used.values()) <= 4
    world.apply(limited)


@PRIORITIES
def test_a_gang_waits_if_limits_leave_too_little(priority: int) -> None:
    world = _world()
    assert isinstance(_plan(world, 2, 2, 2, 2, priority=priority, limits=(2, 2, 2, 1)), Wait)
    assert isinstance(_plan(world, 2, 2, 2, 2, priority=priority), Place), "nothing has changed"
