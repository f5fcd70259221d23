"""The cell engine: which leaf cells a gang gets. Pure, under the contract of `policy`.

- `plan` is deterministic and changes nothing; `apply` and the `observe_…` methods change state.
- An exception means that nothing changed. "No room" is a `Wait` with a stable reason.
- Single writer: the shell serialises calls, the engine has no locks.
- After every step all of `invariants` hold, above all VC safety (`supply`).

    answers   Decisions that say no, each with its reason: to wait, to refuse, to preempt.
    budget    How much one decision may cost: all bounds of the search in one place, each with …
    engine    The engine: who has which leaf cell, and who may have which next.
    model     What goes into the engine and what comes out: requests, decisions, views. Immutable.
    wording   Sentences for people, made from reason codes and their arguments.
    decide/   From a request to a decision, and from a decision to a changed state.
    fit/      Where a gang fits if no other gang moves.
    observe/  What the cluster reports: bound pods, nodes, a new topology.
    preempt/  Which gangs must end or be downgraded so that a guaranteed gang can start.
    state/    Cells, VCs and gangs as they are now, and the operations that change them. Private …
    views/    What the engine shows of itself, and the invariants that it checks.
"""
