"""The steps of a reservation: what it becomes with the cells that a search has found.

Only functions of their arguments: a replay of the log calls them again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from extender.cells.model import Shadow
from extender.queue.reserve.ends import deadline_of
from extender.queue.reserve.model import FoundCells, Reservation, Slip, SlipCause, entry_key
from policy.queues.pools import Pool, pool_of
from policy.queues.windows import AdvanceReservation
from policy.submission import GangKey, NodeName, VcName

LEAST_SLIP_SECONDS = 30.0
"""A start that is put off by less is no slip."""
_NEW_SLIP_SHARE = 0.25
"""A gang that runs on and on is one slip, until the wait has grown by this share."""


def made(found: FoundCells, *, domain: VcName | None, longest: Mapping[str, float]) -> Reservation:
    """Return the new reservation of a gang; `longest` are the longest runs by class."""
    shadow, request, now = found.shadow, found.search.request, found.search.now
    promised = known_time(shadow.time)
    return Reservation(
        gang=request.gang,
        pool=pool_of(request),
        domain=domain,
        priority=request.priority,
        seats=shadow.seats,
        drained=shadow.drained,
        nodes=shadow.nodes,
        made_at=now,
        first_promised=promised,
        promised=promised,
        deadline=deadline_of(shadow.time, longest=longest, now=now),
        waits_for=shadow.waits_for,
    )


def made_for(entry: AdvanceReservation, found: FoundCells) -> Reservation:
    """Return the new reservation of an entry of the document."""
    shadow, search = found.shadow, found.search
    return Reservation(
        gang=entry_key(entry.name),
        pool=Pool(entry.vc, entry.leaf_type),
        domain=entry.vc,
        priority=search.request.priority,
        seats=shadow.seats,
        drained=shadow.drained,
        nodes=shadow.nodes,
        made_at=search.now,
        first_promised=entry.begins,
        promised=entry.begins,
        deadline=entry.begins,
        waits_for=shadow.waits_for,
    )


def moved(
    one: Reservation,
    found: FoundCells,
    *,
    domain: VcName | None,
    lost: tuple[NodeName, ...],
    longest: Mapping[str, float],
) -> Reservation:
    """Return the reservation of a gang on other cells, because it lost some."""
    shadow, now = found.shadow, found.search.now
    promised = known_time(shadow.time)
    slip = Slip(
        at=now,
        before=one.promised,
        promised=promised,
        cause=SlipCause.CELLS_LOST,
        gang=shadow.waits_for,
        nodes=lost,
    )
    return replace(
        on_cells(one, shadow),
        domain=domain,
        deadline=deadline_of(shadow.time, longest=longest, now=now),
        slips=(*one.slips, slip),
    )


def moved_for(
    one: Reservation,
    entry: AdvanceReservation,
    found: FoundCells,
    *,
    lost: tuple[NodeName, ...],
) -> Reservation:
    """Return the reservation of an entry on other cells, because it lost some."""
    slip = Slip(
        at=found.search.now,
        before=one.promised,
        promised=one.promised,
        cause=SlipCause.CELLS_LOST,
        gang=found.shadow.waits_for,
        nodes=lost,
    )
    return exchanged_for(replace(one, slips=(*one.slips, slip)), entry, found)


def exchanged_for(one: Reservation, entry: AdvanceReservation, found: FoundCells) -> Reservation:
    """Return the reservation of an entry on other cells."""
    on_others = made_for(entry, found)
    return replace(on_others, made_at=one.made_at, promised=one.promised, slips=one.slips)


def on_cells(one: Reservation, shadow: Shadow) -> Reservation:
    """Return the reservation of a gang on other cells; its deadline stays."""
    return replace(
        one,
        seats=shadow.seats,
        drained=shadow.drained,
        nodes=shadow.nodes,
        promised=known_time(shadow.time),
        waits_for=shadow.waits_for,
    )


def gathered_on(one: Reservation, shadow: Shadow) -> Reservation:
    """Return a reservation with free cells in exchange; its deadline becomes no later."""
    return replace(on_cells(one, shadow), deadline=min(one.deadline, shadow.time))


def overrun(
    one: Reservation, ends: Sequence[tuple[GangKey, float]], *, now: float
) -> Reservation | None:
    """Return a reservation whose promised start is over while gangs still hold its cells.

    `ends` are their expected ends, the last one last. None if the start is put off by little.
    """
    last, end = ends[-1]
    promised, before = known_time(end), one.promised
    if promised is not None and before is not None and promised - before < LEAST_SLIP_SECONDS:
        return None
    slip = Slip(at=now, before=one.promised, promised=promised, cause=SlipCause.OVERRUN, gang=last)
    return with_overrun(replace(one, promised=promised, waits_for=last), slip)


def with_overrun(one: Reservation, slip: Slip) -> Reservation:
    """Return a reservation with another slip; it may go on with an earlier one.

    What is expected of a gang that is late may be over every few seconds, for days, and two such
    gangs may take turns.
    """
    least = _NEW_SLIP_SHARE * (slip.at - one.made_at)
    for place, known in reversed(list(enumerate(one.slips))):
        if (known.cause, known.gang) == (slip.cause, slip.gang) and slip.at - known.at < least:
            longer = replace(known, promised=slip.promised)
            slips = (*one.slips[:place], longer, *one.slips[place + 1 :])
            return replace(one, slips=slips)
    return replace(one, slips=(*one.slips, slip))


def known_time(time: float) -> float | None:
    """Return a time, None if it is infinite."""
    return time if time < inf else None
