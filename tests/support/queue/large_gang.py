"""A large gang that waits for the nodes of a VC, which small gangs use."""

from dataclasses import replace

from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import GangKey
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0
AFTER = 600.0
LARGE = a_gang("large").times(4, 4)


def a_world(**rules: object) -> TimedWorld:
    """Four nodes of four leaf cells, all promised to one VC."""
    cluster = a_cluster("4 nodes x 4").promising("a", node=4)
    return TimedWorld(cluster.build(), queues=replace(DEFAULT_QUEUES, **rules))  # type: ignore[arg-type]


def small(name: str, leaf_cells: int = 4) -> GangBuilder:
    return a_gang(name).of(leaf_cells)


def a_full_world(**rules: object) -> TimedWorld:
    """Gangs that end after one to four hours use all nodes, and a large gang waits."""
    world = a_world(**rules)
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(LARGE, runs=HOUR)
    return world


def key(name: str) -> GangKey:
    return GangKey("ns", name)
