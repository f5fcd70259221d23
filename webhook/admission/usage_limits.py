"""Limits that go with a charge, so that the ledger compares and charges in one step. Pure."""

from policy.quotas.limits import Limit, Measure, Scope
from policy.rules.decision import Range
from policy.submission import UserName
from state.ledger.ledger import Charge


def range_limits(charge: Charge, valid: Range) -> tuple[Limit, ...]:
    """Turn the range in which a rule decision holds into limits on what its submitter then holds.

    If usage has left the range since the decision, the charge is refused and the decision is made
    again.
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
