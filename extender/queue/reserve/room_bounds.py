"""Which waiting gangs cannot start now, by arithmetic alone: they are not planned again.

A plan costs a hundred times as much as a comparison. A gang gets at most the leaf cells that its VC
does not use, or that are idle, without those which are reserved for others. Bounds only rule out:
whether a gang fits is the engine's decision. The head of a pool is planned, unless it has a
reservation: its owner is told the present numbers. A gang whose last decision had another reason is
planned again, too, so that its owner is told the reason that holds now: not at each event, which
changes the reasons of many, but some gangs every second.
"""

from math import inf

from extender.cells.model import OPPORTUNISTIC, MemberRequest, ReasonCode
from extender.queue.lines.shapes import GangShape
from extender.queue.lines.sleepers import Lack
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.gaps import Gaps, shortest_run
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import LineBounds, WaitingGangs
from policy.queues.pools import pool_of
from policy.submission import GangKey

_FULL = {Lack.OWN_CELLS: ReasonCode.VC_FULL, Lack.CELLS: ReasonCode.NO_ROOM}
_OF_ROOM = frozenset({*_FULL.values(), ReasonCode.RESERVED})
_CORRECT_SECONDS = 1.0
_AT_ONCE = 8
"""Gangs that are planned in one second only to correct what their owners are told."""
_LOOKS = 128
"""Gangs that are looked at for this."""


class RoomBounds(LineBounds):
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
        left = _AT_ONCE
        for gang in list(self._misled)[:_LOOKS]:
            del self._misled[gang]
            if not self._is_told_why(gang):
                self._waiting.plan_again(gang)
                left -= 1
            if not left:
                return

    def _is_told_why(self, gang: GangKey) -> bool:
        """Tell whether the reason that a gang was told holds again: it needs no plan."""
        shape, first = self._waiting.shape(gang), self._seen.find(gang)
        if shape is None or first is None:
            return True  # it does not wait any more
        lack = self._compare(shape, first) if _has_bound(shape, first) else None
        return lack is not None and _told(first) is _code_of(lack)

    def lack(self, shape: GangShape, gang: GangKey) -> Lack | None:
        """Return what the first gang of a line certainly lacks; None if it has to be planned."""
        first = self._seen[gang]
        if not _has_bound(shape, first) or self._is_head(first):
            return None
        lack = self._compare(shape, first)
        if lack is not None and _told(first) is not _code_of(lack):
            self._misled[gang] = None
        return lack

    def too_many(self, request: MemberRequest) -> float:
        """Return from how many leaf cells on a gang with a request lacks cells."""
        most = self._cells.most_leaf_cells(request)
        return inf if most is None else most + 1

    def is_settled(self, shape: GangShape, gang: GangKey) -> bool:
        """Tell whether a gang that lacks cells was told so the last time."""
        first = self._seen[gang]
        if not _has_bound(shape, first) or self._is_head(first):
            return False
        lack = Lack.CELLS if shape.request.priority == OPPORTUNISTIC else Lack.OWN_CELLS
        return _told(first) is _code_of(lack)

    def _is_head(self, gang: QueuedGang) -> bool:
        """Tell whether a gang is the first of its pool, and has no reservation."""
        if gang.has_reservation:
            return False
        return self._waiting.head(pool_of(gang.first.request)) == gang.key

    def _compare(self, shape: GangShape, first: QueuedGang) -> Lack | None:
        request, needed = shape.request, sum(shape.sizes)
        is_opportunistic = request.priority == OPPORTUNISTIC
        most = self._cells.most_leaf_cells(request)
        if most is None:
            return None
        if needed > most:
            return Lack.CELLS if is_opportunistic else Lack.OWN_CELLS
        kept = self._gaps.kept_from(first, runs=shortest_run(shape.run))
        beside = self._cells.most_leaf_cells(request, kept) if kept else most
        if beside is None or needed <= beside:
            return None
        return Lack.GAP if is_opportunistic else Lack.OWN_GAP


def _has_bound(shape: GangShape, gang: QueuedGang) -> bool:
    """Tell whether a gang waits for all of its cells, in the one form that it has."""
    is_whole = not gang.has_begun and not gang.victims
    return is_whole and not shape.is_incremental and not shape.forms and _told(gang) in _OF_ROOM


def _told(gang: QueuedGang) -> ReasonCode | None:
    return None if gang.noticed is None else gang.noticed.code


def _code_of(lack: Lack) -> ReasonCode:
    return _FULL.get(lack, ReasonCode.RESERVED)
