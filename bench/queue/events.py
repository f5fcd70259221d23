"""What adding a gang and one event cost while 10,000 gangs of 500 and more shapes wait.

The cluster is full. Gangs of ten VCs wait, guaranteed and opportunistic, in many sizes. An event is
the end of a gang: its leaf cells become free, the planner plans every gang that they may help, and
one of them takes the cells. All steps of the planner that follow are counted. This is measured
before gangs have waited for long, and once the first gangs of all pools have reservations.
"""

import gc
import time
from collections.abc import Iterator
from random import Random
from typing import Final

from bench.core.clusters import LEAVES
from bench.queue.replay import world_of
from bench.queue.run_times import AlikeRunTimes
from bench.queue.shape import build_cluster
from bench.report import SEED, Result, percentile
from extender.cells.model import OPPORTUNISTIC
from policy.submission import ClassName, GangKey, UserName, VcName
from timemachine.model import Arrival
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.planned_gangs import PlannedGangs

_VCS: Final = 10
_NODES: Final = 200
_MOST_MEMBERS: Final = 6
_OPPORTUNISTIC: Final = 0.2
_NANOSECONDS_PER_MS: Final = 1e6
_LATER_SECONDS: Final = 1000.0
"""By then the first gangs of all pools have waited long enough for a reservation."""


def measure_events(*, is_quick: bool) -> list[Result]:
    """Time submissions and events."""
    gangs, events = (2_000, 60) if is_quick else (10_000, 300)
    random = Random(SEED)
    shares = {VcName(f"vc-{index}"): _NODES for index in range(_VCS)}
    queue = PlannedGangs(world_of(build_cluster(shares)), run_times=AlikeRunTimes)
    running = _fill(queue)
    waiting = [
        _gang(f"waiting-{index}", random, created=1 + index / gangs) for index in range(gangs)
    ]
    for gang in waiting:
        queue.submit(gang)
    queue.work(1.0)
    random.shuffle(running)
    for _ in _end(queue, running[:events], now=3.0):
        pass  # until the rankings of possible victims are built
    gc.collect()
    gc.freeze()
    times = list(_submit(queue, random, count=events))
    ends = list(_end(queue, running[events : 2 * events], now=3.0))
    for second in range(2 * _VCS):
        queue.work(_LATER_SECONDS + second)
    gc.collect()
    gc.freeze()
    asked = queue.cells.asked
    late = list(_end(queue, running[2 * events : 3 * events], now=_LATER_SECONDS + 60.0))
    plans = (queue.cells.asked - asked) / events
    gc.unfreeze()
    case: dict[str, int | str] = {"waiting": gangs, "shapes": _count_shapes(waiting)}
    return [
        Result(case=case, metric="add_p50_ms", value=percentile(times, 50)),
        Result(case=case, metric="add_p99_ms", value=percentile(times, 99)),
        Result(case=case, metric="event_p50_ms", value=percentile(ends, 50)),
        Result(case=case, metric="event_p99_ms", value=percentile(ends, 99)),
        Result(case=case, metric="event_beside_reservations_p50_ms", value=percentile(late, 50)),
        Result(case=case, metric="event_beside_reservations_p99_ms", value=percentile(late, 99)),
        Result(case=case, metric="plans_beside_reservations", value=plans),
    ]


def _fill(queue: PlannedGangs) -> list[PlayedGang]:
    running = [_whole_node(vc, node) for vc in range(_VCS) for node in range(_NODES)]
    for gang in running:
        queue.submit(gang)
    queue.work(0.0)
    return running


def _submit(queue: PlannedGangs, random: Random, *, count: int) -> Iterator[float]:
    """Add gangs to those that wait, and decide about each; yield the milliseconds."""
    for index in range(count):
        gang = _gang(f"added-{index}", random, created=1e6 + index)
        began = time.process_time_ns()
        queue.submit(gang)
        queue.work(2.0)
        yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _count_shapes(gangs: list[PlayedGang]) -> int:
    found = {(one.sizes, one.arrival.vc, one.priority) for one in gangs}
    return len(found)


def _end(queue: PlannedGangs, running: list[PlayedGang], *, now: float) -> Iterator[float]:
    """End gangs, one a second, and decide about those that wait; yield the milliseconds."""
    for second, gang in enumerate(running):
        began = time.process_time_ns()
        queue.end(gang.key, at=now + second)
        queue.work(now + second)
        yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _whole_node(vc: int, node: int) -> PlayedGang:
    return _played(f"running-{vc}-{node}", [LEAVES], vc=vc, priority=0, created=0.0)


def _gang(name: str, random: Random, *, created: float) -> PlayedGang:
    """Build a gang of up to six members of two sizes."""
    sizes = [random.randint(1, LEAVES)] * random.randint(1, _MOST_MEMBERS)
    sizes[0] = random.randint(sizes[-1], LEAVES)
    priority = OPPORTUNISTIC if random.random() < _OPPORTUNISTIC else 0
    return _played(name, sizes, vc=random.randrange(_VCS), priority=priority, created=created)


def _played(name: str, sizes: list[int], *, vc: int, priority: int, created: float) -> PlayedGang:
    key = GangKey("bench", name)
    arrival = Arrival(
        gang=key,
        submitted=created,
        run_seconds=0.0,
        sizes=tuple(sizes),
        user=UserName(""),
        requested_class=ClassName(""),
        vc=VcName(f"vc-{vc}"),
    )
    return PlayedGang(
        key=key, arrival=arrival, class_name=ClassName(""), priority=priority, created=created
    )
