"""Reserved cells that are in use, exchanged for cells that became free.

A reservation names the cells of the gangs that were expected to end first. Runs are hard to
predict: other cells become free sooner, and without an exchange later gangs would get them, while
the head waits for those that run longer than expected. So a reservation takes free cells in
exchange for those whose gangs end last. Its deadline never becomes later, and the gangs that hold
its cells are some of those that held them before: the bound on waiting stays (`reservations`).
"""

from collections.abc import Collection
from dataclasses import replace
from math import inf

from extender.cells.model import Shadow
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import Reservation
from extender.queue.reserve.shadow_times import ShadowTimes


def gathered(
    one: Reservation,
    gang: QueuedGang,
    *,
    cells: Cells,
    shadows: ShadowTimes,
    beside: Collection[Reservation],
) -> Reservation | None:
    """Return a reservation of which fewer cells are in use; None if there is none."""
    idle, most = cells.count_kept(one.domain, one.kept), cells.most_leaf_cells(gang.first.request)
    if most is not None and most <= idle:
        return None  # all free cells are reserved already
    holders = cells.view_seats(one.domain, one.kept).holders
    if not holders:
        return None
    shadow = shadows.find(gang, beside=beside, ending=holders)
    if shadow is None:
        return None
    found = (*shadow.seats, *shadow.drained)
    is_more = cells.count_kept(one.domain, found) > idle
    if not is_more or not set(cells.view_seats(one.domain, found).holders) <= set(holders):
        return None
    return replace(on_cells(one, shadow), deadline=min(one.deadline, shadow.time))


def on_cells(one: Reservation, shadow: Shadow) -> Reservation:
    """Return a reservation with other cells."""
    return replace(
        one,
        seats=shadow.seats,
        drained=shadow.drained,
        nodes=shadow.nodes,
        promised=known_time(shadow.time),
        waits_for=shadow.waits_for,
    )


def known_time(time: float) -> float | None:
    """Return a time, None if it is infinite."""
    return time if time < inf else None
