"""Arrivals that try to keep one gang waiting: small gangs without end, with wrong predictions.

Before the horizon of the level is over, gangs arrive that may be ahead of it; after that as many as
fit. Each runs up to R and is predicted to run one second, so that it looks like a good backfill.
"""

from dataclasses import dataclass
from random import Random

from policy.queues.queues import Queues
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

LEAVES = 4
STEP_SECONDS = 2.0
"""How often gangs arrive; the reservation is made, and its gang starts, within a step or two."""


@dataclass
class Adversary:
    """One history: a gang that needs many cells, and all others against it."""

    seed: int
    queues: Queues

    def __post_init__(self) -> None:
        self._random = random = Random(self.seed)
        self._nodes = random.choice([2, 3, 4])
        self._spare = random.choice([0, 0, 1])
        cluster = a_cluster(f"{self._nodes + self._spare} nodes x {LEAVES}")
        cluster.promising("a", node=self._nodes)
        self.world = TimedWorld(cluster.build(), queues=self.queues)
        self.longest = random.choice([20.0, 60.0])
        self.lost = 0
        self._count = 0

    def play(self) -> tuple[float, float]:
        """Let the large gang wait; return its wait (infinite if it did not start) and the bound."""
        world, random = self.world, self._random
        for _ in range(self._nodes * LEAVES):
            self._attack(1)
        world.advance(random.choice([1.0, 5.0, 30.0]))
        asked = world.now
        ahead = self._count_waiting()
        target = world.submit(
            a_gang("target").times(random.randint(1, self._nodes), LEAVES), runs=1.0
        )
        horizon, end = self.queues.settles_after(len(self.queues.levels) - 1), asked + 1.0
        while world.now < end and target not in world.started:
            is_early = world.now < asked + horizon
            if not is_early or random.random() < 0.2:
                self._attack(random.randint(1, LEAVES))
                ahead += is_early
            if self._spare and not self.lost and random.random() < 0.02:
                self._lose_a_node()
            world.advance(STEP_SECONDS)
            window = 2 * self.longest + 4 * STEP_SECONDS
            end = asked + horizon + (ahead + 1 + self.lost) * window
        world.check()
        return world.started.get(target, float("inf")) - asked, end - asked

    def _attack(self, leaf_cells: int) -> None:
        """A gang arrives that is ahead of the large one wherever the strategy allows it."""
        self._count += 1
        runs = self._random.choice([self.longest, self._random.uniform(1, self.longest)])
        gang = _small(self._count, leaf_cells)
        self.world.submit(gang, runs=runs, predicted=1.0, may_preempt=False)

    def _count_waiting(self) -> int:
        return sum(pod.node is None for pod in self.world.pods.values())

    def _lose_a_node(self) -> None:
        made = self.world.planner.reservations.in_force()
        if made:
            self.world.lose_node(self._random.choice(sorted(made[0].nodes)))
            self.lost += 1


def _small(number: int, leaf_cells: int) -> GangBuilder:
    return a_gang(f"small{number:05}").of(leaf_cells).at(900)
