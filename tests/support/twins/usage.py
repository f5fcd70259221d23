"""A substitute for `UsageCache` over a ledger in memory, for tests: always up to date."""

from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.usage import ScopeUsage
from state.ledger.assumed_charges import AssumedCharges
from tests.support.twins.ledger import MemoryLedger


class MemoryUsage:
    """The usage of a `MemoryLedger`; `is_known` can be set to False."""

    def __init__(self, ledger: MemoryLedger, *, is_known: bool = True) -> None:
        self._ledger = ledger
        self.assumed = AssumedCharges()
        self.is_known = is_known

    def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds."""
        return self.assumed.add_to(self._ledger.current_usage(scope))

    def held(self, scope: Scope) -> ScopeUsage:
        """Return the same as `usage`: here the leaf-cell-time costs nothing."""
        return self.usage(scope)

    def assume(self, charge: Charge, *, held: Charge | None = None) -> None:
        """Count a charge that is not in the ledger."""
        self.assumed.add(charge, held=held, now=0.0)
