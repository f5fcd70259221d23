"""Usage in memory beside a ledger in memory, for tests: always fresh, unless it is taken away."""

from policy.quotas.limits import Scope
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charge, ScopeUsage
from state.ledger.memory import MemoryLedger


class MemoryUsage:
    """Tells what a `MemoryLedger` knows, without waiting."""

    def __init__(self, ledger: MemoryLedger, *, is_known: bool = True) -> None:
        self._ledger = ledger
        self.assumed = AssumedCharges()
        self.is_known = is_known

    def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds."""
        return self.assumed.add_to(self._ledger.current_usage(scope))

    def held(self, scope: Scope) -> ScopeUsage:
        """Return the same: here it costs nothing to know all."""
        return self.usage(scope)

    def assume(self, charge: Charge, *, held: int = 0) -> None:
        """Count a charge that the ledger has not heard of."""
        self.assumed.add(charge, held=held, now=0.0)
