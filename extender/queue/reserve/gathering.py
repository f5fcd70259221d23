"""Reserved cells that are in use, exchanged for cells that became free.

A reservation names the cells of the gangs that were expected to end first. Runs are hard to
predict: other cells become free sooner, and without an exchange later gangs would get them, while
the head waits for those that run longer than expected. So a reservation takes free cells in
exchange for those whose gangs end last. Its deadline never becomes later, and the gangs that hold
its cells are some of those that held them before: the bound on waiting stays (`reservations`).
"""

from collections.abc import Collection

from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import FoundCells, Reservation
from extender.queue.reserve.shadow_times import ShadowTimes


def gather(
    one: Reservation,
    gang: QueuedGang,
    *,
    cells: Cells,
    shadows: ShadowTimes,
    beside: Collection[Reservation],
) -> FoundCells | None:
    """Return cells for a reservation of which fewer are in use; None if there are none."""
    idle, most = cells.count_kept(one.domain, one.kept), cells.most_leaf_cells(gang.first.request)
    if most is not None and most <= idle:
        return None  # all free cells are reserved already
    holders = cells.view_seats(one.domain, one.kept).holders
    if not holders:
        return None
    found = shadows.find(gang, beside=beside, ending=holders)
    if found is None:
        return None
    seats = (*found.shadow.seats, *found.shadow.drained)
    is_more = cells.count_kept(one.domain, seats) > idle
    if not is_more or not set(cells.view_seats(one.domain, seats).holders) <= set(holders):
        return None
    return found
