"""Replays a trace through a queue, as fast as the queue decides: time jumps to the next event."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from bench.queue.queues import Members, ReplayedQueue
from bench.queue.shape import Form, members_of
from bench.queue.trace import Job, Trace
from policy.submission import GangKey

_NANOSECONDS_PER_MS: Final = 1e6
_TICK_SECONDS: Final = 60.0
"""The planner makes a step after this time if gangs wait and nothing happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A gang that started."""

    job: Job
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """All gangs of a trace with their waits."""

    starts: Sequence[Start]
    cpu_seconds: float
    wall_seconds: float
    longest_event_ms: float


def replay(trace: Trace, queue: ReplayedQueue, form: Form) -> Replay:
    """Submit, start and end all gangs of a trace."""
    return _Replaying(trace, queue, form).run()


class _Replaying:
    def __init__(self, trace: Trace, queue: ReplayedQueue, form: Form) -> None:
        self._queue = queue
        self._form = form
        self._arrivals = list(reversed(trace.jobs))
        self._ends: list[tuple[float, int, GangKey]] = []
        self._runs: dict[GangKey, int] = {}
        """How often each gang that runs has started."""
        self._gangs: dict[GangKey, tuple[Job, Members]] = {}
        self._starts: list[Start] = []
        self._longest = 0

    def run(self) -> Replay:
        cpu_began, began = time.process_time(), time.perf_counter()
        now = self._arrivals[-1].submitted
        while self._arrivals or self._ends or self._queue.waiting:
            now = self._next(now)
            event_began = time.perf_counter_ns()
            self._happen(now)
            for gang in self._queue.work(now):
                self._start(gang, now)
            self._submit_again()
            self._longest = max(self._longest, time.perf_counter_ns() - event_began)
        return Replay(
            starts=self._starts,
            cpu_seconds=time.process_time() - cpu_began,
            wall_seconds=time.perf_counter() - began,
            longest_event_ms=self._longest / _NANOSECONDS_PER_MS,
        )

    def _start(self, gang: GangKey, now: float) -> None:
        job, _ = self._gangs[gang]
        run = self._runs[gang] = self._runs.get(gang, 0) + 1
        if run == 1:
            self._starts.append(Start(job=job, wait=now - job.submitted))
        heappush(self._ends, (now + job.seconds, run, gang))

    def _submit_again(self) -> None:
        """Submit gangs again that ended for others: they run from the beginning."""
        for gang in self._queue.evicted:
            self._runs[gang] += 1  # the end of this run is not awaited any more
            self._queue.submit(*self._gangs[gang])
        self._queue.evicted.clear()

    def _next(self, now: float) -> float:
        """Return the time of the next event."""
        times = [self._arrivals[-1].submitted] if self._arrivals else []
        times += [self._ends[0][0]] if self._ends else []
        assert times, f"{self._queue.waiting} gangs wait for ever"
        return min(*times, now + _TICK_SECONDS) if self._queue.waiting else min(times)

    def _happen(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, run, gang = heappop(self._ends)
            if self._runs.get(gang) == run:
                del self._runs[gang]
                self._queue.end(self._gangs.pop(gang)[1])
        while self._arrivals and self._arrivals[-1].submitted <= now:
            job = self._arrivals.pop()
            members = members_of(job, self._form)
            self._gangs[members[0].gang] = job, members
            self._queue.submit(job, members)
