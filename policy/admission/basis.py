"""What a decision depended on beside what was asked for and what the submitter held. Pure.

The decision log has it, so that the decision can be made again (`policy.admission.logged`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policy.quotas.charge import Charge, applies
from policy.quotas.limits import Exceeded, Limit
from policy.quotas.usage import MICROS_PER_HOUR, ScopeUsage

Used = tuple[int | None, ...]
"""How much of each limit of the group that pays was used without the gang, in their order.

None for a limit that does not apply, or of which the ledger has only said that it has room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthBasis:
    """A gang that a member wanted to grow, and was refused."""

    held: Charge
    leaf_count: int | None = None
    """The size with which the rules refuse it; None if quotas do."""
    exceeded: tuple[Exceeded, ...] = ()
    """The limits that it would exceed, as the ledger has compared them: as if it were new."""
    is_running: bool = False
    """Whether pods of the gang were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a decision depended on."""

    used: Used | None = None
    """None if no quota was compared."""
    growth: GrowthBasis | None = None
    """None if the decision is about a new gang."""


NO_BASIS = Basis()


def used_before(charge: Charge, limits: Sequence[Limit], usage: Iterable[ScopeUsage]) -> Used:
    """Return what was used before a charge, given the usage of its scopes with it."""
    by_scope = {one.scope: one for one in usage}
    return tuple(
        by_scope[limit.scope].used(limit.measure, limit.leaf_type) - charge.asks(limit.measure)
        if applies(limit, charge)
        else None
        for limit in limits
    )


def used_of_exceeded(limits: Sequence[Limit], exceeded: Iterable[Exceeded]) -> Used:
    """Return what was used of the limits that the ledger has refused a charge for."""
    found = {one.limit: in_units(one) for one in exceeded}
    return tuple(found.get(limit) for limit in limits)


def in_units(exceeded: Exceeded) -> int:
    """Return what was used of a limit in the unit of `ScopeUsage.used`."""
    return round(exceeded.used * (MICROS_PER_HOUR if exceeded.limit.measure.is_hours else 1))
