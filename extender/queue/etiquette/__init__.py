"""Etiquette: how running gangs are protected from others that wait. Pure: no IO, no clock.

Which gangs may be ended at all is decided in `extender.cells`. Here is what an admin adds to that.
Times are seconds of the caller's clock. Imports: `policy`.

minimum_runs  Which gangs have not run for long enough to be preempted, and until when
"""
