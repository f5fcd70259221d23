"""When and where a gang can start if the gangs that run end as expected."""

from collections.abc import Collection, Iterable

from extender.cells.model import MemberRequest
from extender.queue.member_places import first_request
from extender.queue.model import StepResult
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.calendar import Calendar
from extender.queue.reserve.ends import ExpectedEnds
from extender.queue.reserve.model import CellSearch, FoundCells, Reservation
from policy.submission import GangKey, NodeName

_TRIES = 3
"""Searches for one gang: each leaves the windows alone that the one before ran into."""


class ShadowTimes:
    """Searches shadow times, beside the reservations of other gangs."""

    def __init__(
        self, cells: Cells, nodes: Nodes, run_times: RunTimes, *, calendar: Calendar
    ) -> None:
        self._cells = cells
        self._nodes = nodes
        self._calendar = calendar
        self.ends = ExpectedEnds(run_times)
        """When the gangs that run are expected to end."""

    def is_ready(self, gang: QueuedGang) -> bool:
        """Tell whether the engine has the indexes that a search needs."""
        request = first_request(gang, self._cells)
        return request is None or self._cells.is_ready(request)

    def is_prepared(self, gang: QueuedGang, step: StepResult) -> bool:
        """Tell whether a shadow time is found quickly; if not, prepare some of it."""
        request = first_request(gang, self._cells)
        return request is None or self.is_request_prepared(request, step)

    def is_request_prepared(self, request: MemberRequest, step: StepResult) -> bool:
        """Tell whether a shadow time of a request is found quickly; if not, prepare some of it."""
        if not self._cells.is_ready(request):
            step.to_prepare = step.to_prepare or request
            return False
        holders = self._cells.holders(self._cells.domain(request))
        return self.ends.prepare(holders, now=self._calendar.now)

    def find(
        self,
        gang: QueuedGang,
        *,
        beside: Collection[Reservation],
        ending: Collection[GangKey] | None = None,
    ) -> FoundCells | None:
        """Return when a gang can start if these gangs end, by default all of its domain.

        It leaves advance reservations and maintenance windows alone that it would run into.
        """
        request = first_request(gang, self._cells)
        if request is None:
            return None
        run, covered = self._calendar.counts_for(gang), self._calendar.covered(gang)
        closed = dict(self._calendar.closed_to(gang))
        others = [one for one in beside if one.gang != gang.key and one.entry not in covered]
        kept = [one for one in others if one.entry is None]
        for _ in range(_TRIES):
            found = self.search(
                request,
                kept,
                ending=ending,
                nodes=self._nodes.suiting(gang.node_wishes(), without=closed),
                may_preempt=gang.first.may_preempt,
            )
            if found is None:
                return None
            shadow = found.shadow
            met = [one for one in others if one not in kept and shadow.time + run > one.deadline]
            windows = self._calendar.closed_between(shadow.time, shadow.time + run)
            late = {node: windows[node] for node in shadow.nodes if node in windows}
            if not met and not late:
                return found
            kept, closed = [*kept, *met], {**closed, **late}
        return None

    def search(
        self,
        request: MemberRequest,
        beside: Iterable[Reservation],
        *,
        nodes: Collection[NodeName],
        ending: Collection[GangKey] | None = None,
        may_preempt: bool = True,
    ) -> FoundCells | None:
        """Return when a request can be met on some nodes beside reservations of its domain."""
        domain, now = self._cells.domain(request), self._calendar.now
        beside = [one for one in beside if one.domain == domain]
        holders = self._cells.holders(domain) if ending is None else ending
        # What they give up is reserved in advance for others.
        taken = [one.kept for one in beside if one.entry is not None]
        out = {gang for seats in taken for gang in self._cells.view_seats(domain, seats).holders}
        search = CellSearch(
            request=request,
            nodes=nodes,
            kept=tuple(seat for one in beside for seat in one.kept),
            may_preempt=may_preempt,
            now=now,
        )
        shadow = self._cells.shadow(
            request,
            ends=self.ends.in_order((one for one in holders if one not in out), now=now),
            candidate_nodes=nodes,
            may_preempt=may_preempt,
            now=now,
            kept=search.kept,
        )
        return None if shadow is None else FoundCells(shadow=shadow, search=search)
