"""The state as inspection shows it, and the invariants that it must satisfy.

Reads the state and never changes it. `extender.cluster` and `extender.inspection` use the types.

The one idea: a view of a large cluster must not block the service. Whatever visits all cells or all
gangs is a generator (`Stepwise`) that yields after each item, so that the caller can pause it.

    invariants   Checks everything that must always hold, from scratch
    listings     Lists all cells, VCs, gangs and nodes, step by step
    state_views  Cells, VCs and gangs as inspection shows them
"""
