"""Arrivals that try to keep one gang waiting: small gangs without end, with wrong predictions.

Before the horizon of the level is over, gangs arrive that may be ahead of it; after that as many as
fit. Each runs up to R and is predicted to run one second, so that it looks like a good backfill.
"""

from dataclasses import dataclass, replace
from random import Random

from policy.classes import NO_CLASSES
from policy.queues.queues import Queues
from policy.queues.who import Who
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.submission import VcName
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
    has_windows: bool = False
    """Whether nodes are in maintenance, and cells reserved in advance for others, for a time."""
    has_pools: bool = False
    """Whether some gangs name a leaf type, and others do not, and some of them are large."""

    has_guests: bool = False
    """Whether opportunistic gangs arrive, too, for which small gangs may be put off."""

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
        self.windows_add = self._plan_windows() if self.has_windows else 0.0

    def play(self) -> tuple[float, float]:
        """Let the large gang wait; return its wait (infinite if it did not start) and the bound."""
        world, random = self.world, self._random
        for _ in range(self._nodes * LEAVES):
            self._attack(1)
        world.advance(random.choice([1.0, 5.0, 30.0]))
        asked = world.now
        ahead = self._count_waiting()
        target = world.submit(
            self._in_some_pool(a_gang("target").times(random.randint(1, self._nodes), LEAVES)),
            runs=1.0,
        )
        horizon, end = self.queues.settles_after(len(self.queues.levels) - 1), asked + 1.0
        while world.now < end and target not in world.started:
            is_early = world.now <= asked + horizon  # names decide between gangs of one moment
            if not is_early or random.random() < 0.2:
                self._attack(random.randint(1, LEAVES))
                ahead += is_early
            if self.has_guests and random.random() < 0.5:
                self._invite()
            if self._spare and not self.lost and random.random() < 0.02:
                self._lose_a_node()
            world.advance(STEP_SECONDS)
            window = 2 * self.longest + 4 * STEP_SECONDS
            end = asked + horizon + (ahead + 1 + self.lost) * window + self.windows_add
        world.check()
        return world.started.get(target, float("inf")) - asked, end - asked

    def _plan_windows(self) -> float:
        """Put windows into the document; return how much they add to the bound."""
        random, begins = self._random, self.world.now
        windows: list[MaintenanceWindow] = []
        entries: list[AdvanceReservation] = []
        nodes = sorted(self.world.nodes)
        for number in range(random.randint(1, 3)):
            begins += random.uniform(1.0, 150.0)
            ends = begins + random.uniform(1.0, 90.0)
            if random.random() < 0.5:
                closed = tuple(random.sample(nodes, random.randint(1, len(nodes))))
                window = MaintenanceWindow(
                    name=f"w{number}", nodes=closed, begins=begins, ends=ends, notice=0.0
                )
                windows.append(window)
            else:
                entry = AdvanceReservation(
                    name=f"r{number}",
                    vc=VcName("a"),
                    members=random.randint(1, self._nodes),
                    leaf_cells=random.choice([1, LEAVES]),
                    who=Who(users=frozenset({"named"})),
                    begins=begins,
                    ends=ends,
                )
                entries.append(entry)
            begins = ends if random.random() < 0.8 else begins
        order = self.world.planner.ranking.order
        self.queues = replace(order.queues, maintenance=tuple(windows), reservations=tuple(entries))
        order.configure(self.queues, NO_CLASSES)
        lead = 2 * max(self.queues.run_time.longest.values()) + 4 * STEP_SECONDS
        lengths = [one.ends - one.begins for one in windows]
        lengths += [one.ends - one.begins for one in entries]
        return sum(length + lead for length in lengths)

    def _attack(self, leaf_cells: int) -> None:
        """A gang arrives that is ahead of the large one wherever the strategy allows it."""
        self._count += 1
        gang = _small(self._count, leaf_cells)
        if self.has_pools:
            gang = self._in_some_pool(gang.times(self._random.randint(1, self._nodes), leaf_cells))
        runs = self._random.choice([self.longest, self._random.uniform(1, self.longest)])
        if self.has_guests:
            gang = gang.at(0)  # one that may preempt guests, and not the large gang
        self.world.submit(gang, runs=runs, predicted=1.0, may_preempt=self.has_guests)

    def _invite(self) -> None:
        """An opportunistic gang arrives that runs for ever, unless it is preempted."""
        if self._count_waiting() < 3 * self._nodes:
            self._count += 1
            gang = _small(self._count, self._random.randint(1, LEAVES)).at(-1)
            self.world.guests.add(gang.members()[0].gang)
            self.world.submit(gang, runs=1e9)

    def _in_some_pool(self, gang: GangBuilder) -> GangBuilder:
        is_typed = self.has_pools and self._random.random() < 0.5
        return gang.typed("gpu") if is_typed else gang

    def _count_waiting(self) -> int:
        waiting = (pod for pod in self.world.pods.values() if pod.node is None)
        return len({pod.request.gang for pod in waiting})

    def _lose_a_node(self) -> None:
        made = self.world.planner.reservations.in_force()
        if made:
            self.world.lose_node(self._random.choice(sorted(made[0].nodes)))
            self.lost += 1


def _small(number: int, leaf_cells: int) -> GangBuilder:
    return a_gang(f"small{number:05}").of(leaf_cells).at(900)
