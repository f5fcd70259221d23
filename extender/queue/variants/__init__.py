"""Variants: what would let a waiting gang start earlier, and what could start now. Pure.

The one idea: a variant is planned, not estimated. The gang with one change is given to the same
search that plans gangs, beside the same reservations, and nothing is applied. Documents, users and
JSON do not belong here. Imports: `policy`, `extender.cells`, and of `extender.queue` what plans one
gang.

altered    A gang with one change
model      A change of a gang, and what it is good for
search     The variants of a gang that start earlier, found by planning them
sentences  Sentences about variants, for the owner of the gang
trials     Plans of gangs that do not exist; nothing changes
start_windows  The largest shapes that can start now, and until when
"""
