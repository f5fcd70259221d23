"""Reservations: large gangs start, too, and small ones use the gaps before. Pure: no IO, no clock.

The one idea: the head of a pool that cannot start gets concrete cells and a deadline, and keeps
them until it starts, even if other gangs go ahead of it meanwhile. `reservations` states the bound
on waiting that follows. Times are seconds since 1970, told by the caller. Writing promises to the
database and telling owners do not belong here: `extender.planning` does both. Imports: `policy`,
`extender.cells`, and of `extender.queue` what plans one gang.

backfill      Decisions about other gangs, which leave reserved cells alone or use them in time
ends          When the gangs that run are expected to end
gaps          Which gangs may use the gaps before reservations
model         Reservation, its slips and its end
reservations  Reservations: which gangs have one, when it is made, moved and ended
sentences     Sentences about reservations, for their owners
shadow_times  When and where a gang can start if the gangs that run end as expected
"""
