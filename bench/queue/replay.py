"""Plays a trace through a queue, as fast as the queue decides: time jumps to the next event."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bench.queue.run_times import VC_LABEL
from bench.queue.shape import Form, sizes_of, vc_of
from bench.queue.trace import Job, Trace
from policy.policy import build
from policy.queues.queues import DEFAULT_QUEUES, Queues
from policy.submission import ClassName, GangKey, UserName
from policy.topology import Topology
from timemachine.model import Arrival, Run, World
from timemachine.planned.ports import GangsOf
from timemachine.play import Progress, play
from timemachine.worlds import nodes_of

_NANOSECONDS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A gang that started."""

    vc: str
    leaf_cells: int
    wait: float
    is_counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """All gangs of a trace with their waits."""

    starts: Sequence[Start]
    cpu_seconds: float
    wall_seconds: float
    longest_event_ms: float


def world_of(topology: Topology, queues: Queues = DEFAULT_QUEUES) -> World:
    """Return the world of a trace: all gangs have one class, and nothing has quotas."""
    return World(
        title="bench",
        policy=replace(build({}), queues=queues),
        topology=topology,
        nodes=nodes_of(topology),
    )


def replay(trace: Trace, world: World, gangs: GangsOf, form: Form) -> Replay:
    """Submit, start and end all gangs of a trace."""
    arrivals = [arrival_of(job, form) for job in trace.jobs]
    events = _EventTimes()
    cpu_began, began = time.process_time(), time.perf_counter()
    run = play(arrivals, world, gangs=gangs, on_progress=events.note)
    return Replay(
        starts=_starts(run),
        cpu_seconds=time.process_time() - cpu_began,
        wall_seconds=time.perf_counter() - began,
        longest_event_ms=events.longest / _NANOSECONDS_PER_MS,
    )


def arrival_of(job: Job, form: Form) -> Arrival:
    """Return a gang of a trace as it is played."""
    return Arrival(
        gang=GangKey("trace", job.name),
        submitted=job.submitted,
        run_seconds=job.seconds,
        sizes=tuple(sizes_of(job.leaf_cells, form)),
        user=UserName(""),
        requested_class=ClassName(""),
        vc=vc_of(job, form),
        labels={VC_LABEL: job.vc},
        is_counted=job.is_counted,
    )


def _starts(run: Run) -> list[Start]:
    never = [fate.arrival.gang for fate in run.fates if fate.started is None]
    assert not never, f"{len(never)} gangs wait for ever"
    return [
        Start(
            vc=fate.arrival.labels[VC_LABEL],
            leaf_cells=fate.arrival.leaf_cells,
            wait=run.wait(fate),
            is_counted=fate.arrival.is_counted,
        )
        for fate in run.fates
    ]


class _EventTimes:
    """Measures the longest event."""

    def __init__(self) -> None:
        self._began = time.perf_counter_ns()
        self.longest = 0

    def note(self, _: Progress) -> None:
        """An event is over, and the next one begins."""
        now = time.perf_counter_ns()
        self.longest = max(self.longest, now - self._began)
        self._began = now
