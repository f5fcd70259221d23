"""Protection: how running gangs are protected from others that wait. Pure: no IO, no clock.

Which gangs may be ended at all is decided in `extender.cells`. What an admin adds to that is here.
Times are seconds of the caller's clock. Imports: `policy`.

minimum_runs  Which gangs have not run for long enough to be preempted, and until when
"""
