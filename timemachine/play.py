"""One run: arrivals meet a world, in the order of a virtual clock.

    arrival ──rules, quotas──▶ refused
       │  └──over quota──▶ waits for quota ──room──┐
       └────────────charged────────────────────────┴─▶ planner ──▶ runs ──▶ ends, charge released
                                                          ▲          │
                                                          └─preempted┘ again from the beginning

The clock jumps to the next moment at which something happens: an arrival, an end, the end of a
grace or of a minimum run, a window; while gangs wait the planner also makes a step each minute. At
one moment ends come before arrivals. Equal inputs give equal runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Final

from extender.queue.lines.gang_places import Rank
from policy.placement import Placement
from policy.quotas.charge import Charge
from policy.quotas.held_usage import HeldUsage
from policy.rules.decision import Outcome
from policy.submission import ClassName, GangKey
from timemachine.admitted.admissions import Admissions, Admitted
from timemachine.admitted.quota_queue import QuotaQueue, WaitsForQuota
from timemachine.admitted.raises import Raises
from timemachine.courses import Course, courses_of
from timemachine.figures.head_waits import HeadWaits
from timemachine.figures.use_series import UseSeries
from timemachine.model import Arrival, Run, World
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.planned_gangs import PlannedGangs
from timemachine.planned.ports import Gangs, GangsOf
from timemachine.planned.possibility import Possibility
from timemachine.planned.run_times import seconds_of

_TICK_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 1.0
"""After this time the pods of a gang that was preempted exist again, and it is planned."""
_IDLE_TICKS: Final = 60
"""So many steps are made when nothing runs and nothing arrives: what waits then never starts."""
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come."""

    at: float
    """The virtual clock, in seconds since 1970."""
    arrived: int
    arrivals: int


OnProgress = Callable[[Progress], None]


def play(
    arrivals: Sequence[Arrival],
    world: World,
    *,
    on_progress: OnProgress = lambda _: None,
    gangs: GangsOf = PlannedGangs,
) -> Run:
    """Play all arrivals; `on_progress` is told after each moment at which something happened.

    `gangs` places them; other planners than the product's are for comparison.
    """
    return _Play(arrivals, world, on_progress, gangs(world)).run()


class _Play:
    def __init__(
        self,
        arrivals: Sequence[Arrival],
        world: World,
        on_progress: OnProgress,
        gangs: Gangs,
    ) -> None:
        self._world = world
        self._on_progress = on_progress
        self._courses = courses_of(arrivals)
        self._of = {course.key: course for course in self._courses}
        self._arrived = 0
        self._usage = HeldUsage()
        self._admissions = Admissions(world.policy, self._usage)
        self._quota_queue = QuotaQueue(self._usage)
        self._raises = Raises(world.policy, self._usage)
        self._possible = Possibility(world)
        self._gangs = gangs
        self._ends: list[tuple[float, int, GangKey]] = []
        self._runs: dict[GangKey, int] = {}
        """How often each gang has started."""
        self._use = UseSeries({node.name: node.leaf_count for node in world.nodes})
        self._heads = HeadWaits()
        self._day = -1.0
        self._idle = 0
        """Steps since anything ran or arrived."""
        self._is_again = False
        """Whether a gang was submitted again at this moment."""

    def run(self) -> Run:
        now = self._courses[0].arrival.submitted if self._courses else 0.0
        begin = now
        while self._arrived < len(self._courses) or self._ends or self._may_start():
            now = self._next(now)
            self._happen(now)
            self._on_progress(Progress(at=now, arrived=self._arrived, arrivals=len(self._courses)))
        self._heads.finish(now=now)
        since, until = self._counted(begin, now)
        return Run(
            world=self._world,
            fates=[course.fate() for course in self._courses],
            begin=begin,
            end=now,
            use=self._use.points(begin, now),
            utilisation=self._use.utilisation(since, until),
            fragmentation=self._use.fragmentation(since, until),
            longest_head_wait=self._heads.longest,
        )

    def _counted(self, begin: float, end: float) -> tuple[float, float]:
        """Return from when until when figures count."""
        counted = [one.arrival.submitted for one in self._courses if one.arrival.is_counted]
        first, last = (counted[0], counted[-1]) if counted else (begin, end)
        return (first, last) if last > first else (begin, end)

    # -- the clock

    def _may_start(self) -> bool:
        """Tell whether gangs wait that may start although nothing runs and nothing arrives."""
        has_waiting = bool(self._gangs.waiting or self._quota_queue)
        return has_waiting and self._idle < _IDLE_TICKS

    def _next(self, now: float) -> float:
        """Return the next moment at which something happens."""
        arriving = self._arrived < len(self._courses)
        self._idle = 0 if arriving or self._ends else self._idle + 1
        times = [self._courses[self._arrived].arrival.submitted] if arriving else []
        times += [self._ends[0][0]] if self._ends else []
        times.append(max(now, self._gangs.next_time()))
        times += [now + _AGAIN_SECONDS] if self._is_again else []
        times += [now + _TICK_SECONDS] if self._gangs.waiting else []
        times += [(now // _DAY + 1) * _DAY] if self._quota_queue else []
        return min(times)

    def _happen(self, now: float) -> None:
        self._usage.clock = now
        self._take_ends(now)
        self._take_arrivals(now)
        self._follow_day(now)
        for key in self._quota_queue.charge():
            self._plan(self._of[key])
        for charge in self._raises.work():
            self._raise(self._of[charge.gang], charge)
        self._is_again = False
        for change in self._gangs.work(now):
            course = self._of[change.gang]
            if change.is_start:
                self._start(course, change.places, now=now)
            else:
                self._preempt(course, change.places, now=now)
        self._heads.update(self._gangs.heads(), now=now)

    def _follow_day(self, now: float) -> None:
        """Leaf-cell-hours of a period are free again when the next one begins."""
        if now // _DAY != self._day:
            self._day = now // _DAY
            self._quota_queue.free_all()
            self._raises.free_all()

    # -- arrivals

    def _take_arrivals(self, now: float) -> None:
        while self._arrived < len(self._courses):
            course = self._courses[self._arrived]
            if course.arrival.submitted > now:
                return
            self._arrived += 1
            self._arrive(course, now=now)

    def _arrive(self, course: Course, *, now: float) -> None:
        admitted = self._admissions.admit(course.arrival, course.key)
        course.outcome, course.class_name = admitted.outcome, admitted.class_name
        course.reason, course.charge = admitted.reason, admitted.charge
        course.is_lowered = admitted.is_lowered
        course.group = None if admitted.request is None else admitted.request.group_name
        if admitted.charge is None:
            return
        course.gang = self._gang(course, admitted)
        if not course.gang.sizes:
            course.started = now
            self._await_end(course, now=now)
        elif never := self._possible.why_never(course.gang):
            self._give_up(course, never)
        elif admitted.outcome is Outcome.QUEUED:
            self._use.wait(course.arrival.leaf_cells, at=now)
            self._await_quota(course, admitted)
        else:
            self._use.wait(course.arrival.leaf_cells, at=now)
            if admitted.request is not None:
                asked = course.arrival.submitted
                self._raises.put(admitted.request, admitted.charge, asked=asked)
            self._plan(course)

    def _gang(self, course: Course, admitted: Admitted) -> PlayedGang:
        return PlayedGang(
            key=course.key,
            arrival=course.arrival,
            class_name=admitted.class_name,
            priority=self._priority(admitted.class_name),
            group=course.group,
            created=course.arrival.submitted,
        )

    def _priority(self, class_name: ClassName) -> int:
        priority = self._world.policy.classes.cell_priority(class_name)
        return 0 if priority is None else priority

    def _give_up(self, course: Course, why: str) -> None:
        """A gang can never start: it does not wait, and holds no charge."""
        course.can_start = False
        course.reason = f"{course.reason} {why}".strip()
        if self._world.policy.refuses_impossible:
            course.outcome = Outcome.REFUSED
        if course.charge is not None and course.outcome is not Outcome.QUEUED:
            self._usage.release(course.charge)

    def _await_quota(self, course: Course, admitted: Admitted) -> None:
        assert admitted.charge is not None
        assert admitted.request is not None
        self._quota_queue.put(
            WaitsForQuota(
                gang=course.key,
                charge=admitted.charge,
                limits=admitted.request.quotas,
                rank=lambda: self._rank(course),
            )
        )

    def _rank(self, course: Course) -> Rank:
        """Rank a gang that waits for quota, in the order in which gangs wait for cells."""
        assert course.gang is not None
        return self._gangs.rank(course.gang, now=self._usage.clock)

    def _plan(self, course: Course) -> None:
        assert course.gang is not None
        self._gangs.submit(course.gang)

    def _raise(self, course: Course, charge: Charge) -> None:
        """A gang that quotas lowered gets its class."""
        assert course.gang is not None
        course.charge = charge
        priority = self._priority(charge.class_name)
        course.gang = replace(course.gang, class_name=charge.class_name, priority=priority)
        self._gangs.rank_anew(course.gang)

    # -- starts and ends

    def _start(self, course: Course, places: Sequence[Placement], *, now: float) -> None:
        if course.started is None:
            course.started = now
            course.nodes = tuple(dict.fromkeys(place.node for place in places))
        self._use.wait(-course.arrival.leaf_cells, at=now)
        self._use.start(course.arrival.vc, places, at=now)
        self._await_end(course, now=now)

    def _await_end(self, course: Course, *, now: float) -> None:
        run = self._runs[course.key] = self._runs.get(course.key, 0) + 1
        seconds = seconds_of(course.arrival, course.class_name, self._world.policy.queues)
        heappush(self._ends, (now + seconds, run, course.key))

    def _take_ends(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, run, key = heappop(self._ends)
            if self._runs[key] == run:
                self._end(self._of[key], now=now)

    def _end(self, course: Course, *, now: float) -> None:
        course.ended = now
        if course.gang is not None and course.gang.sizes:
            self._use.end(course.arrival.vc, self._gangs.places(course.key), at=now)
            self._gangs.end(course.key, at=now)
        if course.charge is not None:
            self._usage.release(course.charge)
            self._raises.remove(course.key)
            self._quota_queue.free(course.charge.scopes)
            self._raises.free(course.charge.scopes)

    def _preempt(self, course: Course, places: Sequence[Placement], *, now: float) -> None:
        """A gang ended for another one: it is submitted again and runs from the beginning."""
        assert course.gang is not None
        course.preemptions += 1
        self._runs[course.key] += 1  # the end of this run is not awaited any more
        self._use.end(course.arrival.vc, places, at=now)
        self._use.wait(course.arrival.leaf_cells, at=now)
        course.gang = replace(course.gang, created=now)
        self._plan(course)
        self._is_again = True
