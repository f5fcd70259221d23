"""Plans of gangs that do not exist: one at a time, and nothing changes.

Each plan is about the moment at which it is made. Between two plans the caller may do other work,
so that many plans block nothing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf

from extender.cells.model import Decision, MemberRequest, Place, Shadow, Wait
from extender.cells.views.listings import Stepwise
from extender.queue.member_places import first_request, preview_unplaced, unplaced
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import Guard, GuardedSearch
from extender.queue.reserve.model import Reservation
from extender.queue.reserve.reservations import Reservations
from extender.queue.reserve.shadow_times import ShadowTimes
from extender.queue.seen_gangs import SeenGangs
from policy.queues.windows import MaintenanceWindow

Prepare = Callable[[MemberRequest], Stepwise[None]]
"""Builds the indexes of the engine that a decision needs."""
Assume = Callable[[], AbstractContextManager[None]]
"""Lets nodes know the pods of a gang that does not exist, and forget what they were asked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What would be decided about a gang."""

    decision: Decision
    backfills: Reservation | None = None
    """The reservation whose cells it would use meanwhile."""
    takes_own: bool = False
    """Whether it needs what is reserved for the gang that it is a variant of."""


class Trials:
    """Plans gangs as the planner does."""

    def __init__(
        self,
        cells: Cells,
        nodes: Nodes,
        *,
        run_times: RunTimes,
        seen: SeenGangs,
        ranking: Ranking,
        reservations: Reservations,
        prepare: Prepare,
    ) -> None:
        self.cells = cells
        self._nodes = nodes
        self._seen = seen
        self._ranking = ranking
        self._reservations = reservations
        self._shadows = ShadowTimes(cells, nodes, run_times, calendar=reservations.calendar)
        self._prepare = prepare

    @property
    def now(self) -> float:
        """The time that counts, in seconds since 1970."""
        return self._ranking.now

    def has_places(self, gang: QueuedGang) -> bool:
        """Tell whether a gang has places, or preempts others to get them."""
        return self.cells.known_sizes(gang.key) is not None

    def plan(
        self,
        gang: QueuedGang,
        assume: Assume,
        *,
        is_new: bool = True,
        ends_at: float | None = None,
    ) -> Stepwise[Outcome]:
        """Decide about a gang beside reservations; `ends_at` is when it ends, if that is known.

        A gang that is not new is the waiting one itself, and may use what is reserved for it.
        """
        yield
        request = first_request(gang, self.cells)
        if request is not None and not self.cells.is_ready(request):
            yield from self._prepare(request)
        with assume():
            guard = self._reservations.gaps.guard(gang, ends_at=ends_at)
            return self._plan_new(gang, guard) if is_new else self._plan_beside(gang, guard)

    def _plan_new(self, gang: QueuedGang, guard: Guard) -> Outcome:
        """Plan a variant beside what is reserved for the gang itself, or else without.

        Without, it gets the cells only if no other gang takes them once that reservation ends.
        """
        own = self._reservations.find(gang.key)
        if own is None or own.domain != self.cells.domain(gang.first.request):
            return self._plan_beside(gang, guard)
        outcome = self._plan_beside(gang, replace(guard, binding=(*guard.binding, own)))
        if not isinstance(outcome.decision, Wait) or self._is_contended(own):
            return outcome
        return replace(self._plan_beside(gang, guard), takes_own=True)

    def _plan_beside(self, gang: QueuedGang, guard: Guard) -> Outcome:
        search = GuardedSearch(
            gang,
            unplaced(gang, self.cells),
            guard=guard,
            cells=self.cells,
            nodes=self._nodes,
            now=self.now,
        )
        return Outcome(preview_unplaced(gang, self.cells, search), search.backfills)

    def _is_contended(self, own: Reservation) -> bool:
        """Tell whether other gangs of the same domain wait."""
        return any(
            one.noticed is not None
            and one.key != own.gang
            and self.cells.domain(one.first.request) == own.domain
            for one in self._seen
        )

    def maintenance_of(self, gang: QueuedGang, decision: Place) -> MaintenanceWindow | None:
        """Return the first maintenance window that keeps a gang off the nodes of a decision."""
        closed = self._reservations.gaps.guard(gang).maintained
        nodes = (place.node for place in (decision.placement, *decision.others))
        found = (closed[node] for node in nodes if node in closed)
        return min(found, key=lambda one: one.begins, default=None)

    def shadow(self, gang: QueuedGang, assume: Assume) -> Stepwise[Shadow | None]:
        """Return when a gang can start if the gangs that run end as expected."""
        yield
        holders = self.cells.holders(self.cells.domain(gang.first.request))
        while not self._shadows.ends.prepare(holders, now=self.now):
            yield
        yield
        request = first_request(gang, self.cells)
        if request is not None and not self.cells.is_ready(request):
            yield from self._prepare(request)
        with assume():
            found = self._shadows.find(gang, beside=self._reservations.in_force())
            return None if found is None else found.shadow


def starts_at(shadow: Shadow | None) -> float:
    """Return when a gang starts that waits for cells only; infinite if that is unknown."""
    if shadow is None or shadow.waits_for is None:
        return inf
    return shadow.time
