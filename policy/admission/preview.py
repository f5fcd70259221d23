"""Decide about a gang by the usage that is given, without any effect. Pure.

The webhook decides so while the ledger is unavailable, and in previews; `/v1/simulate` does with
usage from the ledger. With the ledger the webhook makes the same decision, but has the database
compare the limits, in one step with the charge.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from policy.admission import growth
from policy.admission.basis import Basis, Used
from policy.admission.charge_request import ChargeRequest, build_charge, with_member
from policy.admission.gang_decision import (
    GangDecision,
    apply_rules,
    check_fixed_class,
    decide_now,
    follow_charge,
)
from policy.quotas.admission import AdmissionDecision, OverQuota, over_quota
from policy.quotas.charge import Charge, compare, find_exceeded, find_used
from policy.quotas.limits import Exceeded, Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import Occupancy

UsageOf = Callable[[Scope], ScopeUsage]
"""What a scope holds and has used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDecision:
    """How a gang was admitted when an earlier member was created: charged, or queued for quota."""

    charge: Charge
    is_queued: bool = False
    is_running: bool = False
    """Whether pods of the gang were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDecision:
    """A decision about one member, and the charge of its gang with it."""

    decision: GangDecision
    charge: Charge | None
    """None if the gang is not charged: it is refused, or waits for quota."""


def decide(
    request: ChargeRequest,
    *,
    usage: UsageOf | None,
    occupancy: Occupancy | None,
    earlier: EarlierDecision | None = None,
    notes: tuple[str, ...] = (),
) -> MemberDecision:
    """Decide about a pod: as the first of its gang, or by the decision about an earlier member.

    `occupancy` is what the submitter holds, for rules. Without `usage` no quota is compared. Raises
    RequestError if the pod does not match its gang.
    """
    rules = apply_rules(request, occupancy)
    is_refused = rules.outcome is Outcome.REFUSED
    admission = AdmissionDecision(rules=rules, notes=notes)
    if earlier is not None and not (is_refused and request.is_alone):
        return follow(request, earlier, admission, usage=usage, occupancy=occupancy)
    if not is_refused:
        check_fixed_class(request, rules.final_class)
    used = find_used_quotas(request, rules, usage)
    over = find_over(request, rules, used)
    decision = decide_now(request, replace(admission, quota=over), basis=Basis(used=used))
    if decision.outcome is not Outcome.ADMITTED:
        return MemberDecision(decision=decision, charge=None)
    check_fixed_class(request, decision.gang_class)
    rises_to = decision.admission.rises_to
    charge = build_charge(request, decision.gang_class, rises_to=rises_to)
    return MemberDecision(decision=decision, charge=charge)


def occupancy_of(usage: ScopeUsage) -> Occupancy:
    """Return what a submitter holds in all groups, as rules count it."""
    return Occupancy(occupied=usage.leaf_cells, occupied_high=usage.leaf_cells_high)


def follow(
    request: ChargeRequest,
    earlier: EarlierDecision,
    admission: AdmissionDecision,
    *,
    usage: UsageOf | None,
    occupancy: Occupancy | None,
) -> MemberDecision:
    """Return the earlier decision about a gang, or a refusal of what this member adds."""
    held = earlier.charge
    decision = follow_charge(
        request, held, admission, is_queued=earlier.is_queued, is_running=earlier.is_running
    )
    if earlier.is_queued:
        return MemberDecision(decision=decision, charge=None)
    grown = with_member(request, held)
    if grown.leaf_count != held.leaf_count:
        judged = growth.judge(request, held, grown.leaf_count, usage=occupancy)
        if judged.is_refused:
            refusal = growth.refuse_by_rules(request, held, judged, notes=admission.notes)
            return MemberDecision(decision=refusal, charge=None)
    exceeded = _find_outgrown(request, held, grown, usage)
    if exceeded:
        refusal = growth.refuse_by_quotas(request, held, decision, exceeded)
        return MemberDecision(decision=refusal, charge=None)
    return MemberDecision(decision=decision, charge=grown)


def find_used_quotas(
    request: ChargeRequest, rules: RuleDecision, usage: UsageOf | None
) -> Used | None:
    """Return how much of its quotas is used without a gang; None if they are not compared."""
    is_refused = rules.outcome is Outcome.REFUSED
    if request.group is None or is_refused or usage is None:
        return None
    return find_used(build_charge(request, rules.final_class), request.quotas, usage)


def find_over(request: ChargeRequest, rules: RuleDecision, used: Used | None) -> OverQuota | None:
    """Compare a gang with its quotas; None if it is within them, or what is used is unknown."""
    if request.group is None or rules.outcome is Outcome.REFUSED or used is None:
        return None
    charge = build_charge(request, rules.final_class)
    exceeded = tuple(compare(charge, request.quotas, used))
    if not exceeded:
        return None
    return over_quota(rules, request.group, exceeded, classes=request.policy.classes)


def _find_outgrown(
    request: ChargeRequest, held: Charge, grown: Charge, usage: UsageOf | None
) -> tuple[Exceeded, ...]:
    """Return the limits that a grown gang exceeds, compared as if it were new."""
    is_same = grown.cpu_and_memory == held.cpu_and_memory
    if usage is None or (is_same and grown.leaf_count == held.leaf_count):
        return ()
    is_larger = grown.leaf_count != held.leaf_count
    find_limits = growth.find_limits if is_larger else growth.find_amount_limits
    limits = find_limits(request, held)
    return tuple(find_exceeded(grown, limits, lambda scope: _without_gang(usage(scope), held)))


def _without_gang(usage: ScopeUsage, held: Charge) -> ScopeUsage:
    overflow = usage.overflow
    if held.rises_to is not None:
        overflow = replace(overflow, **_less(overflow, held))
    return replace(usage, overflow=overflow, **_less(usage, held))


def _less(sums: HeldSums, held: Charge) -> dict[str, Any]:
    """Return the fields of sums without a charge."""
    by_type = dict(sums.by_leaf_type)
    if held.leaf_type is not None:
        by_type[held.leaf_type] = by_type.get(held.leaf_type, 0) - held.leaf_count
    return {
        "leaf_cells": sums.leaf_cells - held.leaf_count,
        "leaf_cells_high": sums.leaf_cells_high - held.leaf_count * held.is_high,
        "gangs": sums.gangs - 1,
        "by_leaf_type": by_type,
        "cpu_millis": sums.cpu_millis - held.cpu_millis,
        "memory_bytes": sums.memory_bytes - held.memory_bytes,
    }
