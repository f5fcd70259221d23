"""The cell engine: which leaf cells a gang gets. Pure, under the contract of `policy`.

- `plan` is deterministic and changes nothing; `apply` and the `observe_…` methods change state.
- An exception means that nothing changed. "No room" is a `Wait` with a stable reason.
- Single writer: the shell serialises calls, the engine has no locks.

Today every node is one cell of leaf cells, open to all VCs. Chains, entitlement and preemption come
on this contract.
"""
