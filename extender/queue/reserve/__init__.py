"""Reservations: large gangs start, too, and small ones use the gaps before. Pure: no IO, no clock.

The one idea: the head of a pool that cannot start gets concrete cells and a deadline, and keeps
them until it starts, even if other gangs go ahead of it meanwhile. `reservations` states the bound
on waiting that follows. Times are seconds since 1970, told by the caller. Writing promises to the
database and telling owners do not belong here: `extender.planning` does both. Imports: `policy`,
`extender.cells`, and of `extender.queue` what plans one gang.

advance       Advance reservations: reservations of the document's entries
backfill      Decisions about other gangs, which leave reserved cells alone or use them in time
calendar      Maintenance windows and advance reservations in time
defragmentation  Moves of opportunistic gangs that let a gang with a reservation start earlier
ends          When the gangs that run are expected to end, and by when others must end
gaps          Which gangs may use the gaps before reservations
gathering     Reserved cells that are in use, exchanged for cells that became free
model         Reservation, its slips and its end
nodes_within  Some nodes of the cluster, as the search for places sees them
reservations  Reservations: which gangs have one, when it is made, moved and ended
room_bounds   Which waiting gangs cannot start now, by arithmetic alone
sentences     Sentences about reservations, for their owners
shadow_times  When and where a gang can start if the gangs that run end as expected
steps         What a reservation becomes with the cells that a search has found
turns         Which gang gets the next reservation, also where pools share cells
useful_cells  For which gangs reserved cells are of use
"""
