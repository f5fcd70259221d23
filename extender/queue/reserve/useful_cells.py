"""For which gangs reserved cells are of use."""

from collections import Counter
from collections.abc import Collection, Iterable
from math import inf

from extender.cells.model import OPPORTUNISTIC, ReasonCode, Shadow
from extender.queue.member_places import first_request
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import Reservation
from policy.queues.pools import Pool
from policy.submission import GangKey

_WAITS_FOR_CELLS = frozenset(
    {
        ReasonCode.NO_ROOM,
        ReasonCode.VC_FULL,
        ReasonCode.BAD_CELLS,
        ReasonCode.FOREIGN_USE,
        ReasonCode.SEARCH_ENDED,
        ReasonCode.RESERVED,
        ReasonCode.RESERVED_AHEAD,
        ReasonCode.MAINTENANCE,
        ReasonCode.MINIMUM_RUN,
        ReasonCode.PREEMPTING,  # of a gang that may not preempt
    }
)


def is_vain(gang: QueuedGang, shadow: Shadow) -> bool:
    """Tell whether cells would stay idle for an opportunistic gang for an unknown time.

    Guaranteed gangs may take them at any time, so that a reservation gives it no bound.
    """
    return gang.first.request.priority == OPPORTUNISTIC and shadow.time == inf


def awaited(gang: QueuedGang, holders: Collection[GangKey], cells: Cells) -> Collection[GangKey]:
    """Return the holders of cells for whose end a gang waits: it preempts the others in time."""
    if cells.is_preempting(gang.key):
        return ()
    if not gang.first.may_preempt or gang.first.request.priority == OPPORTUNISTIC:
        return holders
    return [one for one in holders if cells.victim_priority(one) != OPPORTUNISTIC]


def suits(one: Reservation, gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether cells are reserved for as many members, of the same sizes, as the gang has.

    A gang that may start with some of its members has cells for as many as fitted.
    """
    request = first_request(gang, cells)
    if request is None or request.gang_min is not None:
        return True
    reserved = sorted(len(seat.leaves) for seat in one.seats)
    return reserved == sorted(filter(None, request.gang_leaf_counts))


def surplus(made: Iterable[Reservation], *, per_pool: int) -> list[GangKey]:
    """Return the gangs with the youngest reservations of pools that have more than so many."""
    of_gangs = sorted((one.made_at, one.gang, one.pool) for one in made if one.entry is None)
    count, found = Counter[Pool](), list[GangKey]()
    for _, gang, pool in of_gangs:
        count[pool] += 1
        if count[pool] > per_pool:
            found.append(gang)
    return found


def waits_for_cells(gang: QueuedGang) -> bool:
    """Tell whether a gang waits for cells and nothing else."""
    return gang.noticed is not None and gang.noticed.code in _WAITS_FOR_CELLS
