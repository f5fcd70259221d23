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
from bench.queue.queues import Members, PlannedQueue
from bench.queue.shape import build_cluster
from bench.queue.trace import Job
from bench.report import SEED, Result, percentile
from extender.cells.model import OPPORTUNISTIC, MemberRequest
from policy.submission import GangKey, PodUid, VcName

_VCS: Final = 10
_NODES: Final = 200
_MOST_MEMBERS: Final = 6
_OPPORTUNISTIC: Final = 0.2
_NANOSECONDS_PER_MS: Final = 1e6
_LATER_SECONDS: Final = 1000.0
"""By then the first gangs of all pools have waited long enough for a reservation."""
_ANY_JOB: Final = Job(name="", submitted=0.0, seconds=0.0, leaf_cells=1, vc="")


def measure_events(*, is_quick: bool) -> list[Result]:
    """Time submissions and events."""
    gangs, events = (2_000, 60) if is_quick else (10_000, 300)
    random = Random(SEED)
    queue = PlannedQueue(build_cluster({VcName(f"vc-{index}"): _NODES for index in range(_VCS)}))
    running = _fill(queue)
    waiting = [
        _gang(f"waiting-{index}", random, created=1 + index / gangs) for index in range(gangs)
    ]
    for members in waiting:
        queue.submit(_ANY_JOB, members)
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


def _fill(queue: PlannedQueue) -> list[Members]:
    running = [_whole_node(vc, node) for vc in range(_VCS) for node in range(_NODES)]
    for members in running:
        queue.submit(_ANY_JOB, members)
    queue.work(0.0)
    return running


def _submit(queue: PlannedQueue, random: Random, *, count: int) -> Iterator[float]:
    """Add gangs to those that wait, and decide about each; yield the milliseconds."""
    for index in range(count):
        members = _gang(f"added-{index}", random, created=1e6 + index)
        began = time.process_time_ns()
        queue.submit(_ANY_JOB, members)
        queue.work(2.0)
        yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _count_shapes(gangs: list[Members]) -> int:
    found = {(one[0].gang_leaf_counts, one[0].vc, one[0].priority) for one in gangs}
    return len(found)


def _end(queue: PlannedQueue, running: list[Members], *, now: float) -> Iterator[float]:
    """End gangs, one a second, and decide about those that wait; yield the milliseconds."""
    for second, members in enumerate(running):
        began = time.process_time_ns()
        queue.end(members)
        queue.work(now + second)
        yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _whole_node(vc: int, node: int) -> Members:
    return _members(f"running-{vc}-{node}", [LEAVES], vc=vc, priority=0, created=0.0)


def _gang(name: str, random: Random, *, created: float) -> Members:
    """Build a gang of up to six members of two sizes."""
    sizes = [random.randint(1, LEAVES)] * random.randint(1, _MOST_MEMBERS)
    sizes[0] = random.randint(sizes[-1], LEAVES)
    priority = OPPORTUNISTIC if random.random() < _OPPORTUNISTIC else 0
    return _members(name, sizes, vc=random.randrange(_VCS), priority=priority, created=created)


def _members(name: str, sizes: list[int], *, vc: int, priority: int, created: float) -> Members:
    return [
        MemberRequest(
            member=PodUid(f"{name}-{index}"),
            gang=GangKey("bench", name),
            leaf_count=size,
            gang_leaf_counts=tuple(sizes),
            vc=VcName(f"vc-{vc}"),
            priority=priority,
            created=created,
        )
        for index, size in enumerate(sizes)
    ]
