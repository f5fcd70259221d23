"""Limits as the webhook uses them: compared in memory, and sent with a charge. Pure."""

from collections.abc import Callable, Iterator, Sequence

from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.rules.decision import Range
from policy.submission import UserName
from state.ledger.ledger import Charge, Usage, build_exceeded, choose_applicable, to_units


def find_exceeded(
    charge: Charge, limits: Sequence[Limit], usage: Callable[[Scope], Usage]
) -> tuple[Exceeded, ...]:
    """Return the limits that a charge would exceed, by the usage in memory."""
    return tuple(_exceeded(charge, limits, usage))


def _exceeded(
    charge: Charge, limits: Sequence[Limit], usage: Callable[[Scope], Usage]
) -> Iterator[Exceeded]:
    for limit in choose_applicable(charge, limits):
        used = usage(limit.scope).used(limit.measure, limit.leaf_type)
        exceeded = build_exceeded(limit, charge=charge, used=used)
        most = to_units(limit)
        if used >= most if limit.measure.is_hours else used + exceeded.asked > most:
            yield exceeded


def range_limits(charge: Charge, valid: Range) -> tuple[Limit, ...]:
    """Turn the range in which a rule decision holds into limits on what its submitter then holds.

    With them the ledger compares and charges in one step: if usage has left the range since the
    decision, the charge is refused, and the decision is made again.
    """
    own, own_high = charge.leaf_count, charge.leaf_count * charge.is_high
    ends = (
        (Measure.LEAF_CELLS, valid.occupied, own),
        (Measure.LEAF_CELLS_HIGH, valid.occupied_high, own_high),
    )
    return tuple(
        Limit(scope=Scope(charge.user), measure=measure, most=beside + counted)
        for measure, beside, counted in ends
        if beside is not None
    )


def impossible_limits(user: UserName) -> tuple[Limit, ...]:
    """Return limits that no charge fits: the ledger's refusal then says what the user holds."""
    measures = (Measure.LEAF_CELLS, Measure.LEAF_CELLS_HIGH)
    return tuple(Limit(scope=Scope(user), measure=measure, most=-1) for measure in measures)
