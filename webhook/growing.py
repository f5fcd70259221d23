"""Gangs that grow: a member asks for more than its gang is charged for. Pure.

Who pays for a gang was decided with its first member. Whatever group a later one names, it is that
group's limits that the gang must stay within: limits of another say nothing about its charge.
"""

from dataclasses import replace

from policy.admission import OverQuota
from policy.decision import Outcome
from policy.limits import Exceeded, Limit
from policy.quotas import QuotaGroup
from policy.submission import ClassName
from state.ledger import Charge
from webhook.verdict import Request, Verdict, decided


def growth_limits(request: Request, held: Charge) -> tuple[Limit, ...]:
    """Return what a growing gang must stay within; nothing where its class may run beyond."""
    group, classes = _paying_group(request, held), request.policy.classes
    if group is None:
        return ()
    if group.lowers and not classes.is_lower(ClassName(group.over), held.class_name):
        return ()
    return group.limits(held.user)


def too_much(
    request: Request, held: Charge, verdict: Verdict, exceeded: tuple[Exceeded, ...]
) -> Verdict:
    """Refuse a member with which its gang would be over quota: it cannot wait alone."""
    assert held.group is not None
    rules = verdict.admission.rules
    asked = next((one.asked for one in exceeded if one.asked > 1), rules.submission.leaf_count)
    over = OverQuota(
        group=held.group,
        outcome=Outcome.REFUSED,
        exceeded=exceeded,
        class_before=verdict.final_class,
        class_after=verdict.final_class,
    )
    rules = replace(rules, submission=replace(rules.submission, leaf_count=asked), hits=())
    return decided(request, replace(verdict.admission, rules=rules, quota=over))


def _paying_group(request: Request, held: Charge) -> QuotaGroup | None:
    return None if held.group is None else request.policy.quotas.group(held.group)
