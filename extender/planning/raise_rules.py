"""What the policy in force says about raising a gang that runs beyond its quotas. Pure.

The rules are applied as at admission, to what the submitter holds beside this gang: a submitter
must not get more in high classes by having been over quota before.
"""

from dataclasses import dataclass, replace

from kube.read.managed_pod import ManagedPod
from policy.policy import Policy
from policy.quotas.admission import describe_use
from policy.quotas.charge import Charge, choose_applicable, range_limits
from policy.quotas.limits import Limit
from policy.quotas.usage import MICROS_PER_HOUR, ScopeUsage
from policy.rules.decision import Outcome, RuleDecision, class_text
from policy.submission import ClassName, Occupancy, Submission
from policy.wording import count_of, name


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A raise that the rules allow, within these limits."""

    class_name: ClassName
    is_high: bool
    quotas: tuple[Limit, ...]
    ranges: tuple[Limit, ...]
    """Within them the rules decide the same."""


def needs_usage(pod: ManagedPod, charge: Charge, policy: Policy) -> bool:
    """Whether the rules depend on what the submitter holds."""
    return _judge(pod, charge, policy, usage=None).needs_usage


def plan_raise(
    pod: ManagedPod, charge: Charge, policy: Policy, *, usage: Occupancy | None
) -> Raise | None:
    """Return how a gang may be raised; None if the rules, or the classes, do not allow it.

    `usage` is what its submitter holds, this gang included; None where no rule needs it.
    """
    classes, wanted = policy.classes, charge.rises_to
    others = None if usage is None else _without(usage, charge)
    rules = _judge(pod, charge, policy, usage=others)
    if rules.outcome is Outcome.REFUSED or wanted is None:
        return None
    target = rules.final_class if classes.is_lower(rules.final_class, wanted) else wanted
    if not classes.is_lower(charge.class_name, target):
        return None
    is_high = classes.is_high(target)
    raised = replace(charge, class_name=target, is_high=is_high, rises_to=None)
    group = None if charge.group is None else policy.quotas.group(charge.group)
    return Raise(
        class_name=target,
        is_high=is_high,
        quotas=() if group is None else group.limits(charge.user),
        ranges=range_limits(raised, rules.valid),
    )


def describe_raise(pod: ManagedPod, charge: Charge) -> str:
    """Say which gang is raised from which class to which."""
    cells = count_of(charge.leaf_count, "leaf cell")
    whose = f"gang {pod.gang.key} of {name(charge.user)} ({cells})"
    before = class_text(charge.raised_from or ClassName(""))
    return f"{whose} is raised from {before} to {name(charge.class_name)}"


def describe_room_for(
    charge: Charge, quotas: tuple[Limit, ...], usage: tuple[ScopeUsage, ...]
) -> str:
    """Say which limits have room for a raised gang; `usage` is with it."""
    known = {one.scope: one for one in usage}
    used = [
        describe_use(limit, _used(known[limit.scope], limit))
        for limit in choose_applicable(charge, quotas)
        if limit.scope in known
    ]
    return f"with it, {'; '.join(used)}" if used else "no quota limits it any more"


def _used(usage: ScopeUsage, limit: Limit) -> float:
    used = usage.used(limit.measure, limit.leaf_type)
    return used / MICROS_PER_HOUR if limit.measure.is_hours else used


def _judge(
    pod: ManagedPod, charge: Charge, policy: Policy, *, usage: Occupancy | None
) -> RuleDecision:
    submission = Submission(
        user=charge.user,
        groups=pod.submitter_groups,
        vc=charge.vc,
        requested_class=pod.requested_class or charge.rises_to or charge.class_name,
        gang=charge.gang,
        gang_size=charge.gang_size or 1,
        leaf_count=charge.leaf_count,
        leaf_type=charge.leaf_type,
        labels=pod.labels,
    )
    return policy.rules.decide(submission, usage=usage, classes=policy.classes)


def _without(usage: Occupancy, charge: Charge) -> Occupancy:
    return Occupancy(
        occupied=max(0, usage.occupied - charge.leaf_count),
        occupied_high=max(0, usage.occupied_high - charge.leaf_count * charge.is_high),
    )
