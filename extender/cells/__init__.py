"""The cell engine: which leaf cells a gang gets. Pure, under the contract of `policy`.

- `plan` is deterministic and changes nothing; `apply` and the `observe_…` methods change state.
- An exception means that nothing changed. "No room" is a `Wait` with a stable reason.
- Single writer: the shell serialises calls, the engine has no locks.
- After every step all of `invariants` hold, above all VC safety (`supply`).

From the bottom: `tree` (physical cells), `ranking` (bins by room), `supply` (buddy free lists,
promises), `vcs` and `gangs` (who claims and who holds), `table` (all of it, and the operations
that change it, noted in `changes`). On that, deciding: `leaves`, `gathering`, `packing`,
`openings`, `mapping`, `exhaustive`, `fitting`, `chains` (where a gang fits), `damage`, `clearance`
(bins by what clearing them costs), `gang_sizes`, `preemption`, `carving` (cells first), `outlook`,
`clearing`, `victims` and `making_room` (who makes room), `admission` and `reasons` (why not, in the
words of `wording`), `planning`, all within `limits`; and doing: `lives` (gangs from their beginning
to their end), `verifying` and `applying` (decisions), `sighting`, `claiming`, `observing` (what
runs), `joining` (nodes), `adopting` and `reconfiguration` (a new topology). `engine` is the door.
"""
