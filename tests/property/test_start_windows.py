"""The largest shape of a window starts now, and one that is larger by one member does not."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.queue.variants.start_windows import StartWindow, WindowShape, member_sizes
from policy.submission import LeafType
from tests.support.cells.builders import a_gang
from tests.support.cells.random_clusters import a_random_cluster
from tests.support.queue.timed_world import TimedWorld
from tests.support.queue.trying import find_window


class _History:
    """Random gangs on a random cluster; the same seed gives the same history."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        topology = a_random_cluster(random)
        self.world = TimedWorld(topology)
        vcs = sorted(topology.vcs)
        for number in range(random.randint(0, 8)):
            gang = a_gang(f"g{number}").times(random.randint(1, 3), random.choice([1, 1, 2, 4]))
            gang = gang.in_vc(random.choice(vcs)).at(random.choice([0, 0, -1]))
            known = random.choice([None, 3600.0])
            self.world.submit(gang, runs=3600.0, predicted=known, may_preempt=False)
            if random.random() < 0.4:
                self.world.advance(random.choice([1.0, 700.0]))
        self.world.settle()
        self.vc = random.choice(vcs)
        self.leaf_type = random.choice(sorted({c.leaf_type for c in topology.chains.values()}))
        self.priority = random.choice([0, -1])

    def window(self) -> StartWindow:
        """What can start now."""
        return find_window(self.world, vc=self.vc, leaf_type=self.leaf_type, priority=self.priority)

    def starts(self, shape: WindowShape) -> bool:
        """Submit a gang of a shape, which ends in time if it must; does it start?"""
        gang = a_gang("new").times(shape.members, shape.leaf_cells).typed(self.leaf_type)
        limit = None if shape.until is None else shape.until - self.world.now
        key = self.world.submit(
            gang.in_vc(self.vc).at(self.priority), runs=1.0, limit=limit, may_preempt=False
        )
        return key in self.world.started


@given(st.integers(0, 2**32))
def test_each_shape_starts_and_one_that_is_larger_does_not(seed: int) -> None:
    history = _History(seed)
    found = [one for one in history.window().shapes if not one.victims]
    for one in found:
        assert _History(seed).starts(one), one
        larger = replace(one, members=one.members + 1)
        assert not _History(seed).starts(larger), one
    endless = {one.leaf_cells for one in found if one.until is None}
    for size in member_sizes(history.world.topology, LeafType(history.leaf_type)):
        if size not in endless:
            assert not _History(seed).starts(WindowShape(members=1, leaf_cells=size))
