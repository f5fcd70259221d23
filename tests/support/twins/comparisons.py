"""Comparisons of charges, as the ledger makes them. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from policy.quotas.charge import Charge
from policy.quotas.limits import Exceeded, Limit
from state.ledger.ledger import LiveCharge


def recounted(live: LiveCharge | None, counted: Charge) -> LiveCharge | None:
    """Return a charge with the CPU and memory of another one; None if it has changed meanwhile."""
    if live is None or not is_of(live.charge, counted):
        return None
    if live.charge.leaf_count != counted.leaf_count:
        return None
    charge = replace(live.charge, cpu_millis=counted.cpu_millis, memory_bytes=counted.memory_bytes)
    return replace(live, charge=charge)


def exceeded_by_change(
    limits: Sequence[Limit], *, beside: Sequence[Exceeded], without: Sequence[Exceeded]
) -> tuple[Exceeded, ...]:
    """Return what a changed charge exceeds: hours with the gang as it is, all else without it."""
    found = {one.limit: one for one in without}
    found |= {one.limit: one for one in beside if one.limit.measure.is_hours}
    return tuple(found[limit] for limit in limits if limit in found)


def is_same(one: Charge, other: Charge) -> bool:
    """Whether two charges are equal, whatever their decisions."""
    return replace(one, decision=other.decision) == other


def is_of(charge: Charge, asked: Charge) -> bool:
    """Whether a charge is of the decision, holder and class that are asked for."""
    keys = [(one.decision, one.user, one.group, one.class_name) for one in (charge, asked)]
    return keys[0] == keys[1]


def is_as_seen(live: LiveCharge, seen: LiveCharge | None) -> bool:
    """Whether a charge has not changed since it was seen."""
    if seen is None:
        return True
    before, now = ((one.charged_at, one.charge.leaf_count) for one in (seen, live))
    return before == now
