"""What is said to start now starts now when it is submitted so; what is larger by one does not."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.queue.variants.altered import altered
from extender.queue.variants.model import ChangeKind, StartKind, Variant
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import GangKey
from tests.support.cells.builders import GangBuilder, a_gang
from tests.support.cells.random_clusters import a_random_cluster
from tests.support.cells.snapshot import snapshot
from tests.support.queue.timed_world import TimedWorld
from tests.support.queue.trying import find_variants

_SIZES = (1, 1, 2, 2, 3, 4)


class _History:
    """Random gangs on a random cluster; the same seed gives the same history."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(seed)
        topology = a_random_cluster(random)
        self.leaf_types = sorted({chain.leaf_type for chain in topology.chains.values()})
        self.vcs = sorted(topology.vcs)
        self.world = TimedWorld(topology, queues=DEFAULT_QUEUES)
        self.waiting: list[GangKey] = []
        for number in range(random.randint(3, 12)):
            self._submit(f"g{number}")
            if random.random() < 0.4:
                self.world.advance(random.choice([1.0, 300.0, 700.0]))

    def _submit(self, name: str) -> None:
        random = self._random
        gang = a_gang(name).times(random.randint(1, 4), random.choice(_SIZES))
        gang = gang.in_vc(random.choice(self.vcs)).at(random.choice([0, 0, 5, -1]))
        if random.random() < 0.5:
            gang = gang.typed(random.choice(self.leaf_types))
        known = random.choice([None, 600.0, 3600.0])
        self.world.submit(gang, runs=3600.0, predicted=known, may_preempt=False)

    def all_waiting(self) -> list[GangKey]:
        """Gangs that have not started, in the order in which they came."""
        started = self.world.started
        found = {pod.request.gang for pod in self.world.pods.values()}
        return sorted(gang for gang in found if gang not in started)

    def try_variant(self, gang: GangKey, variant: Variant) -> bool:
        """Submit a gang again with a change, and delete it before if told so; does it start?"""
        queued, world = self.world.planner.seen[gang], self.world
        pods = [*altered(queued, variant.change).pods.values()]
        first, run = pods[0].request, world.run_times.of[gang]
        limit = run.limit
        if variant.change.kind is ChangeKind.LIMIT:
            limit = float(variant.change.after)
        if variant.takes_own:
            world.end(gang)
            world.work()
        sizes = tuple(pod.request.leaf_count for pod in pods)
        request = replace(first, gang_leaf_counts=sizes, leaf_count=sizes[0])
        again = GangBuilder(replace(request, gang=GangKey("ns", "again")))
        key = world.submit(again, runs=600.0, predicted=run.high, limit=limit, may_preempt=False)
        return key in world.started


@given(st.integers(0, 2**32))
def test_what_is_said_to_start_now_starts_when_it_is_submitted_so(seed: int) -> None:
    history = _History(seed)
    for gang in history.all_waiting()[:3]:
        before = snapshot(history.world.engine)
        variants = _variants(history, gang)
        assert snapshot(history.world.engine) == before
        for variant in variants:
            assert _History(seed).try_variant(gang, variant), variant


def _variants(history: _History, gang: GangKey) -> list[Variant]:
    found = find_variants(history.world, gang, leaf_types=history.leaf_types, vcs=history.vcs)
    return [one for one in found.found if one.start is StartKind.NOW]


@given(st.integers(0, 2**32))
def test_no_larger_number_starts_now(seed: int) -> None:
    history = _History(seed)
    for gang in history.all_waiting()[:2]:
        found = find_variants(history.world, gang)
        if found.starts_now:
            continue
        known = {one.change.kind: one for one in found.found if one.start is StartKind.NOW}
        for kind in (ChangeKind.MEMBERS, ChangeKind.LEAF_CELLS):
            one = known.get(kind)
            if one is None:
                continue
            larger = replace(one.change, after=int(one.change.after) + 1)
            if larger.after != one.change.before:
                again = _History(seed)
                assert not again.try_variant(gang, replace(one, change=larger)), larger
