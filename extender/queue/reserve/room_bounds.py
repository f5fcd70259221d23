"""Which waiting gangs cannot start now, by arithmetic alone: they are not planned again.

A plan costs a hundred times as much as a comparison. A gang gets at most the leaf cells that its VC
does not use, or that are idle, without those which are reserved for others. Bounds only rule out:
whether a gang fits is the engine's decision. The head of a pool is planned, unless it has a
reservation: its owner is told the present numbers. A gang whose last decision had another reason is
planned again, too, so that its owner is told the reason that holds now: not at each event, which
changes the reasons of many, but some gangs every second.
"""

from math import inf

from extender.cells.model import OPPORTUNISTIC, ReasonCode
from extender.queue.lines.shapes import GangShape
from extender.queue.lines.sleepers import Lack
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.gaps import Gaps, shortest_run
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.pools import pool_of
from policy.submission import GangKey

_FULL = {Lack.OWN_CELLS: ReasonCode.VC_FULL, Lack.CELLS: ReasonCode.NO_ROOM}
_OF_ROOM = frozenset({*_FULL.values(), ReasonCode.RESERVED})
_CORRECT_SECONDS = 1.0
_AT_ONCE = 8
"""Gangs that are planned in one second only to correct what their owners are told."""


class RoomBounds:
    """Compares what lines of gangs ask for with what is left."""

    def __init__(self, cells: Cells, gaps: Gaps, *, seen: SeenGangs, waiting: WaitingGangs) -> None:
        self._cells = cells
        self._seen = seen
        self._waiting = waiting
        self._gaps = gaps
        self._misled: dict[GangKey, None] = {}
        """Gangs that certainly do not fit, but for another reason than their owners were told."""
        self._correct_at = -inf

    def correct(self, *, now: float) -> None:
        """Let some gangs be planned whose owners were told another reason."""
        if now < self._correct_at:
            return
        self._correct_at = now + _CORRECT_SECONDS
        for gang in list(self._misled)[:_AT_ONCE]:
            del self._misled[gang]
            self._waiting.plan_again(gang)

    def lack(self, shape: GangShape, gang: GangKey) -> Lack | None:
        """Return what the first gang of a line certainly lacks; None if it has to be planned."""
        first = self._seen[gang]
        told = None if first.noticed is None else first.noticed.code
        if told not in _OF_ROOM or shape.request.gang_min is not None or not _is_whole(first):
            return None
        if self._waiting.head(pool_of(first.first.request)) == gang and not first.has_reservation:
            return None
        most = self._cells.most_leaf_cells(shape.request)
        if most is None:
            return None
        lack = self._compare(shape, first, most)
        if lack is not None and told is not _FULL.get(lack, ReasonCode.RESERVED):
            self._misled[gang] = None
        return lack

    def _compare(self, shape: GangShape, first: QueuedGang, most: int) -> Lack | None:
        needed, is_opportunistic = sum(shape.sizes), shape.request.priority == OPPORTUNISTIC
        if needed > most:
            return Lack.CELLS if is_opportunistic else Lack.OWN_CELLS
        kept = self._gaps.count_kept(first, runs=shortest_run(shape.run))
        if needed <= most - kept:
            return None
        return Lack.GAP if is_opportunistic else Lack.OWN_GAP


def _is_whole(gang: QueuedGang) -> bool:
    """Tell whether a gang asks for all of its cells, and none are held for it."""
    return not gang.has_begun and not gang.victims
