"""Writes what the queue decides to the decision log: ranks, reservations, and lifted gates.

A row is written at once, so that it stands where the engine was in that state. The document by
which gangs are ordered is written before the first row that depends on it. A row that cannot be
encoded is a bug, which the log of the process tells: the planner goes on, since gangs wait for it.
"""

import logging
from collections.abc import Callable, Iterable

from extender.cluster.cluster import Cluster
from extender.cluster.journal import Journal
from extender.cluster.order_replay import order_content
from extender.queue.model import Action, ReleasePod
from extender.queue.order.rank_changes import OrderChange, RankChange
from extender.queue.order.ranking import Ranking
from extender.queue.reserve.model import Reservation, ReservationChange, ReservationStep
from extender.queue.reserve.reservations import Reservations
from extender.queue.reserve.sentences import end_sentence, reserved_sentence, slip_sentence
from policy.placement import Placement
from policy.policy import Policy
from policy.submission import GangKey, PodUid
from policy.wording import moment

logger = logging.getLogger(__name__)

_STEPS = {
    ReservationStep.EXCHANGED: "it starts sooner on other leaf cells",
    ReservationStep.CLEARED: "opportunistic gangs are moved off the leaf cells",
    ReservationStep.GATHERED: "other leaf cells became free",
    ReservationStep.RERANKED: "the gang has another priority",
    ReservationStep.TAKEN_OVER: "an earlier leader made it",
}


class QueueLog:
    """Follows the planner of this replica, and writes while it leads."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        ranking: Ranking,
        reservations: Reservations,
        policy: Callable[[], Policy],
    ) -> None:
        """`policy` is the one by which gangs are ordered now."""
        self._cluster = cluster
        self._order = ranking.order
        self._policy = policy
        self._written: tuple[Journal, int] | None = None
        """To which journal the document was written, and its version."""
        ranking.changes.on_rank = self._rank
        ranking.changes.on_leave = self._leave
        ranking.changes.on_order = self._reorder
        reservations.on_change = self._reserve

    def note_actions(self, actions: Iterable[Action]) -> None:
        """Note the gates that a step of the planner lifts."""
        lifted: dict[GangKey, dict[PodUid, Placement]] = {}
        for action in actions:
            member = self._cluster.members.get(action.uid)
            if isinstance(action, ReleasePod) and member is not None:
                lifted.setdefault(member.request.gang, {})[action.uid] = action.placement
        for gang, placements in lifted.items():
            self._release(gang, placements)

    def _release(self, gang: GangKey, placements: dict[PodUid, Placement]) -> None:
        is_whole = placements.keys() == set(self._cluster.members.of_gang(gang))
        self._write(lambda journal: journal.release(gang, placements, is_whole=is_whole))

    def _write(self, write: Callable[[Journal], None]) -> None:
        try:
            write(self._journal())
        except Exception:
            logger.exception("a row of the queue cannot be encoded")

    def _journal(self) -> Journal:
        journal, version = self._cluster.journal, self._order.version
        if self._written != (journal, version):
            journal.follow_policy(order_content(self._policy().content))
            self._written = journal, version
        return journal

    def _rank(self, change: RankChange) -> None:
        self._write(lambda journal: journal.rank(change, self._order))

    def _leave(self, gang: GangKey) -> None:
        self._write(lambda journal: journal.leave_order(gang))

    def _reorder(self, change: OrderChange) -> None:
        self._write(lambda journal: journal.reorder(change, self._order))

    def _reserve(self, change: ReservationChange) -> None:
        self._write(lambda journal: journal.reserve(change, _reason(change.step, change.after)))


def _reason(step: ReservationStep, one: Reservation) -> str:
    if one.end is not None:
        return end_sentence(one.end)
    if step is ReservationStep.MADE:
        return reserved_sentence(one, moment)
    if step in (ReservationStep.MOVED, ReservationStep.SLIPPED):
        return slip_sentence(one.latest_slip, moment)
    return _STEPS[step]
