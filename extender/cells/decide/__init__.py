"""Decisions: how the engine makes one from a request, and how it applies one to the state.

`Decider` combines `fit` (idle cells) and `preempt` (victims) and never changes the state; `Applier`
checks that a decision is still valid and then changes the state. Sentences do not belong here:
decisions are built with `extender.cells.answers`, which takes them from `extender.cells.wording`.
Only the engine imports this folder.

applier       Application of a decision to the state: completely or not at all
decider       From a request to a decision
kept_cells    How many leaf cells kept seats take, without planning
kept_seats    Cells that are kept for a gang that waits, while another one is planned
moves         Opportunistic gangs that could run elsewhere, so that another one fits
refusals      Checks of a request that can never be satisfied as it is
shadow        When a gang could start, if others end as expected
validity      Checks that a decision is still valid when it is applied
wait_reasons  The reason why a gang cannot start now
"""
