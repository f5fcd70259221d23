"""Limits that a billing system sets within bounds, and which of its changes are allowed. Pure.

The admins of the policy state the bounds in the quotas of a group, and who may use them. A limit of
the billing system replaces the same one of the group, or of one of its users. If the bounds are
narrowed later, the nearest allowed number applies: billing never stands in the way of an admin.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from policy.errors import Problem
from policy.quotas.admission import amount_text
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.quota_table import Allowance, BillingBounds, QuotaGroup, QuotaTable
from policy.submission import GroupName, LeafType, UserName
from policy.wording import join_path, listing, name, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledLimits:
    """Limits of a group, or of a user in it, until a moment."""

    group: GroupName
    user: UserName | None = None
    allowance: Allowance
    until: datetime
    reason: str = field(default="", compare=False)

    @property
    def scope(self) -> Scope:
        """Whose limits they are."""
        return Scope(self.user, self.group)


def with_billing(
    groups: Iterable[QuotaGroup], billed: Iterable[BilledLimits]
) -> Iterator[QuotaGroup]:
    """Yield the groups with the limits of the billing system, within their bounds."""
    by_group: dict[GroupName, list[BilledLimits]] = {}
    for one in billed:
        by_group.setdefault(one.group, []).append(one)
    for group in groups:
        for one in by_group.get(group.name, ()) if group.billing else ():
            group = _with(group, one)
        yield group


def _with(group: QuotaGroup, billed: BilledLimits) -> QuotaGroup:
    assert group.billing is not None
    if billed.user is None:
        return replace(group, allowance=_merged(group.allowance, billed.allowance, group.billing))
    own = group.allowance_of(billed.user)
    changed = {billed.user: _merged(own, billed.allowance, group.billing)}
    # Beside `users`: the user is not charged to the group because of it.
    return replace(group, billed_users={**group.billed_users, **changed})


def _merged(own: Allowance, billed: Allowance, bounds: BillingBounds) -> Allowance:
    most: dict[Measure, float] = {}
    for measure, value in billed.most.items():
        if measure in bounds.most.most:
            least = bounds.least.most.get(measure, 0)
            most[measure] = min(max(value, least), bounds.most.most[measure])
    by_type: dict[LeafType, int] = {}
    for leaf_type, count in billed.by_leaf_type.items():
        if leaf_type in bounds.most.by_leaf_type:
            at_least = bounds.least.by_leaf_type.get(leaf_type, 0)
            by_type[leaf_type] = min(max(count, at_least), bounds.most.by_leaf_type[leaf_type])
    return Allowance(most={**own.most, **most}, by_leaf_type={**own.by_leaf_type, **by_type})


def billing_problems(
    before: Sequence[BilledLimits],
    after: Sequence[BilledLimits],
    *,
    table: QuotaTable,
    now: datetime,
) -> Iterator[Problem]:
    """Yield what is wrong with the entries that a change adds."""
    for place, one in enumerate(after):
        if one in before:
            continue
        path = join_path(("limits", place))
        group = table.group(one.group)
        if group is None or group.billing is None:
            yield Problem(f"{path}.group", f"the quotas of {quote(one.group)} have no `billing`")
            continue
        yield from _limit_problems(one, group.billing, path=f"{path}.limits")
        last = now + timedelta(days=group.billing.longest_days)
        if not now < one.until <= last:
            allowed = f"within the next {group.billing.longest_days} days"
            yield Problem(f"{path}.until", f"must be {allowed}, not {one.until.isoformat()}")


def _limit_problems(one: BilledLimits, bounds: BillingBounds, *, path: str) -> Iterator[Problem]:
    for limit in one.allowance.limits(one.scope):
        at = f"{path}.{_field(limit)}"
        least, most = _bounds_of(limit, bounds)
        if most is None:
            yield Problem(at, "may not be changed by billing")
        elif not least <= limit.most <= most:
            low, high, given = (_number(limit, number) for number in (least, most, limit.most))
            yield Problem(at, f"must be from {low} to {high}, not {given}")


def _field(limit: Limit) -> str:
    """Write the path of a limit in its document: `leafCellHours.day`, `byLeafType.A100`."""
    own = () if limit.leaf_type is None else (limit.leaf_type,)
    return join_path((*limit.measure.field.split("."), *own))


def _number(limit: Limit, number: float) -> str:
    """Write a number as the document does: `64`, `1Ti`."""
    return amount_text(limit.measure, number).partition(" ")[0]


def _bounds_of(limit: Limit, bounds: BillingBounds) -> tuple[float, float | None]:
    if limit.leaf_type is not None:
        least = bounds.least.by_leaf_type.get(limit.leaf_type, 0)
        return least, bounds.most.by_leaf_type.get(limit.leaf_type)
    return bounds.least.most.get(limit.measure, 0), bounds.most.most.get(limit.measure)


def changed_groups(
    before: Sequence[BilledLimits], after: Sequence[BilledLimits]
) -> tuple[GroupName, ...]:
    """Return the groups whose entries differ, in order."""
    differing = [one for one in (*before, *after) if (one in before) != (one in after)]
    return tuple(dict.fromkeys(one.group for one in differing))


def describe_billing(
    before: Sequence[BilledLimits], after: Sequence[BilledLimits]
) -> tuple[str, ...]:
    """Say what a change adds and what it takes away, one sentence each."""
    added = [f"sets {_describe(one)}" for one in after if one not in before]
    kept = {one.scope for one in after}
    gone = [f"removes the limits of {one.scope}" for one in before if one.scope not in kept]
    return (*added, *gone)


def _describe(one: BilledLimits) -> str:
    limits = [
        f"{_field(limit)} {_number(limit, limit.most)}" for limit in one.allowance.limits(one.scope)
    ]
    why = f": {name(one.reason)}" if one.reason else ""
    return f"{listing(limits)} for {one.scope} until {one.until.isoformat()}{why}"
