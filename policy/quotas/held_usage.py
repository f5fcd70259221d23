"""What users and groups hold, and have used, when the past is played again: a ledger in memory.

Leaf-cell-time counts as in the ledger: that within quota, in periods of UTC. Before the play
nothing was held and nothing was used.
"""

from dataclasses import replace
from datetime import UTC, datetime

from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.usage import HeldSums, ScopeUsage


class HeldUsage:
    """The charges in force, as sums by scope."""

    def __init__(self) -> None:
        self._of: dict[Scope, ScopeUsage] = {}
        self.clock = 0.0
        """The moment of the next question or change, in seconds since 1970."""

    def of(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used until now."""
        known = self._of.get(scope)
        return ScopeUsage(scope=scope) if known is None else known.advance(self._moment)

    def charge(self, charge: Charge) -> None:
        """Count a charge."""
        self._add(charge, 1)

    def release(self, charge: Charge) -> None:
        """Do not count a charge any more."""
        self._add(charge, -1)

    @property
    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self.clock, UTC)

    def _add(self, charge: Charge, sign: int) -> None:
        for scope in charge.scopes:
            usage = self.of(scope)
            held = _plus(usage, charge, sign)
            overflow = usage.overflow
            if charge.rises_to is not None:
                overflow = _plus(overflow, charge, sign)
            self._of[scope] = replace(
                usage,
                leaf_cells=held.leaf_cells,
                leaf_cells_high=held.leaf_cells_high,
                gangs=held.gangs,
                by_leaf_type=held.by_leaf_type,
                cpu_millis=held.cpu_millis,
                memory_bytes=held.memory_bytes,
                overflow=overflow,
                counted_at=self._moment,
            )


def _plus(sums: HeldSums, charge: Charge, sign: int) -> HeldSums:
    by_type = sums.by_leaf_type
    if charge.leaf_type is not None:
        held = by_type.get(charge.leaf_type, 0) + sign * charge.leaf_count
        by_type = {**by_type, charge.leaf_type: held}
    return HeldSums(
        leaf_cells=sums.leaf_cells + sign * charge.leaf_count,
        leaf_cells_high=sums.leaf_cells_high + sign * charge.leaf_count * charge.is_high,
        gangs=sums.gangs + sign,
        by_leaf_type=by_type,
        cpu_millis=sums.cpu_millis + sign * charge.cpu_millis,
        memory_bytes=sums.memory_bytes + sign * charge.memory_bytes,
    )
