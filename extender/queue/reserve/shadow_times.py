"""When and where a gang can start if the gangs that run end as expected."""

from collections.abc import Collection

from extender.cells.model import Shadow
from extender.queue.member_places import first_request
from extender.queue.model import StepResult
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.ends import ExpectedEnds
from extender.queue.reserve.model import Reservation
from policy.submission import GangKey


class ShadowTimes:
    """Searches shadow times, beside the reservations of other gangs."""

    def __init__(
        self, cells: Cells, nodes: Nodes, run_times: RunTimes, *, ranking: Ranking
    ) -> None:
        self._cells = cells
        self._nodes = nodes
        self._ranking = ranking
        self.ends = ExpectedEnds(run_times)
        """When the gangs that run are expected to end."""

    def is_ready(self, gang: QueuedGang) -> bool:
        """Tell whether the engine has the indexes that a search needs."""
        request = first_request(gang, self._cells)
        return request is None or self._cells.is_ready(request)

    def is_prepared(self, gang: QueuedGang, step: StepResult) -> bool:
        """Tell whether a shadow time is found quickly; if not, prepare some of it."""
        if not self.is_ready(gang):
            step.to_prepare = step.to_prepare or first_request(gang, self._cells)
            return False
        holders = self._cells.holders(self._cells.domain(gang.first.request))
        return self.ends.prepare(holders, now=self._ranking.now)

    def find(
        self,
        gang: QueuedGang,
        *,
        beside: Collection[Reservation],
        ending: Collection[GangKey] | None = None,
    ) -> Shadow | None:
        """Return when a gang can start if these gangs end, by default all of its domain."""
        request = first_request(gang, self._cells)
        if request is None:
            return None
        domain, now = self._cells.domain(request), self._ranking.now
        others = (one for one in beside if one.domain == domain and one.gang != gang.key)
        holders = self._cells.holders(domain) if ending is None else ending
        return self._cells.shadow(
            request,
            ends=self.ends.in_order(holders, now=now),
            candidate_nodes=self._nodes.suiting(gang.node_wishes(), without=()),
            may_preempt=gang.first.may_preempt,
            now=now,
            kept=[seat for one in others for seat in one.kept],
        )
