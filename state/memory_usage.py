"""Usage in memory beside a ledger in memory, for tests: always fresh, unless it is taken away."""

from policy.submission import GangKey
from state.ledger import Charge, Scope, Usage
from state.memory_ledger import MemoryLedger
from state.usage_cache import add_charge


class MemoryUsage:
    """Tells what a `MemoryLedger` knows, without waiting."""

    def __init__(self, ledger: MemoryLedger, *, is_known: bool = True) -> None:
        self._ledger = ledger
        self._assumed: dict[GangKey, Charge] = {}
        self.is_known = is_known

    @property
    def assumed(self) -> tuple[Charge, ...]:
        """Charges that count here only."""
        return tuple(self._assumed.values())

    def usage(self, scope: Scope) -> Usage:
        """Return what a scope holds."""
        usage = self._ledger.current_usage(scope)
        for charge in self._assumed.values():
            if scope in charge.scopes:
                usage = add_charge(usage, charge)
        return usage

    def held(self, scope: Scope) -> Usage:
        """Return the same: here it costs nothing to know all."""
        return self.usage(scope)

    def assume(self, charge: Charge) -> None:
        """Count a charge that the ledger has not heard of."""
        self._assumed[charge.gang] = charge
