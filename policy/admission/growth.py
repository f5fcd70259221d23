"""Whether a charged gang may grow for a member that asks for more than the charge covers. Pure.

The first member decides which group pays for the gang, and the gang must stay within that group's
limits, whatever group a later member names.

A gang cannot bypass the rules by starting small: with the size it grows to, the rules must still
allow its class. Its class cannot be lowered any more, since its members run.
"""

from dataclasses import dataclass, replace

from policy.admission.basis import Basis, GrowthBasis
from policy.admission.charge_request import ChargeRequest, impossible_limits, paying_group
from policy.admission.gang_decision import GangDecision, apply_rules, decide_now
from policy.errors import RequestError
from policy.quotas.admission import AdmissionDecision, OverQuota
from policy.quotas.charge import Charge, range_limits
from policy.quotas.limits import Exceeded, Limit, Measure
from policy.rules.decision import Outcome, RuleDecision
from policy.rules.matching import Matcher
from policy.submission import ClassName, Occupancy
from policy.wording import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What the rules decide about a gang that grows."""

    rules: RuleDecision
    is_refused: bool
    """Whether they refuse the grown gang, or would lower it."""
    grown: Charge

    @property
    def ranges(self) -> tuple[Limit, ...]:
        """The range of usage in which the rules decide so; none for a gang that may not grow."""
        if self.is_refused:
            return impossible_limits(self.grown.user)
        return range_limits(self.grown, self.rules.valid)


def judge(
    request: ChargeRequest,
    held: Charge,
    leaf_count: int,
    *,
    usage: Occupancy | None,
    matcher: Matcher | None = None,
) -> Growth:
    """Apply the rules as if the gang had asked for `leaf_count` at first.

    `usage` is what its submitter holds, including this gang.
    """
    submission = replace(request.submission, leaf_count=leaf_count)
    if held.raised_from is not None:  # its pods may have lower classes than the gang
        submission = replace(submission, requested_class=held.class_name)
        request = replace(request, fixed_class=None)
    others = None if usage is None else _without_gang(usage, held)
    rules = apply_rules(replace(request, submission=submission), others, matcher=matcher)
    is_lower = request.policy.classes.is_lower(rules.final_class, held.class_name)
    return Growth(
        rules=rules,
        is_refused=rules.outcome is Outcome.REFUSED or is_lower,
        grown=held.resized(leaf_count),
    )


def refuse_by_rules(
    request: ChargeRequest, held: Charge, growth: Growth, *, notes: tuple[str, ...] = ()
) -> GangDecision:
    """Refuse a member; RequestError where its gang would have a lower class with it."""
    rules = _count_gang_as_held(growth.rules, held)
    if rules.outcome is Outcome.REFUSED:
        basis = Basis(growth=GrowthBasis(held=held, leaf_count=growth.grown.leaf_count))
        return decide_now(request, AdmissionDecision(rules=rules, notes=notes), basis=basis)
    would = f"with this pod, gang {held.gang} would have class {quote(rules.final_class)}"
    has = f"but its members have class {quote(held.class_name)}, which cannot be changed"
    reasons = " ".join([rules.holdings, *rules.hit_texts()])
    raise RequestError.at("", f"{would}, {has}: {reasons}")


def _count_gang_as_held(rules: RuleDecision, held: Charge) -> RuleDecision:
    """Word the decision as users see it: the gang's charge is held, only the rest is asked for."""
    if rules.usage is None:
        return rules
    usage = Occupancy(
        occupied=rules.usage.occupied + held.leaf_count,
        occupied_high=rules.usage.occupied_high + held.leaf_count * held.is_high,
    )
    more = rules.submission.leaf_count - held.leaf_count
    return replace(rules, usage=usage, submission=replace(rules.submission, leaf_count=more))


def _without_gang(usage: Occupancy, held: Charge) -> Occupancy:
    return Occupancy(
        occupied=max(0, usage.occupied - held.leaf_count),
        occupied_high=max(0, usage.occupied_high - held.leaf_count * held.is_high),
    )


def find_limits(request: ChargeRequest, held: Charge) -> tuple[Limit, ...]:
    """Return the quotas of a growing gang; none where its class may run beyond them."""
    group, classes = paying_group(request, held), request.policy.classes
    if group is None:
        return ()
    if group.lowers and not classes.is_lower(ClassName(group.over), held.class_name):
        return ()
    return group.limits(held.user)


def find_amount_limits(request: ChargeRequest, held: Charge) -> tuple[Limit, ...]:
    """Return the limits of CPU and memory of a gang whose leaf cells stay as they are."""
    return tuple(limit for limit in find_limits(request, held) if limit.measure.is_amount)


def refuse_by_quotas(
    request: ChargeRequest,
    held: Charge,
    decision: GangDecision,
    exceeded: tuple[Exceeded, ...],
) -> GangDecision:
    """Refuse a member with which its gang would be over quota: one member cannot be queued."""
    assert held.group is not None
    rules = decision.admission.rules
    basis = GrowthBasis(held=held, exceeded=exceeded, is_running=decision.is_running)
    exceeded = tuple(_count_excess_as_held(one, held) for one in exceeded)
    asked = next((one.asked for one in exceeded if _is_of_cells(one)), rules.submission.leaf_count)
    over = OverQuota(
        group=held.group,
        outcome=Outcome.REFUSED,
        exceeded=exceeded,
        class_before=decision.final_class,
        class_after=decision.final_class,
    )
    rules = replace(rules, submission=replace(rules.submission, leaf_count=asked), hits=())
    admission = replace(decision.admission, rules=rules, quota=over)
    return decide_now(request, admission, basis=Basis(growth=basis))


def _count_excess_as_held(exceeded: Exceeded, held: Charge) -> Exceeded:
    """Count the gang's charge as held: the ledger compares the grown gang as if it were new."""
    if exceeded.limit.measure.is_hours:
        return exceeded
    has = held.asks(exceeded.limit.measure)
    return replace(exceeded, used=exceeded.used + has, asked=max(0, exceeded.asked - has))


def _is_of_cells(exceeded: Exceeded) -> bool:
    measure = exceeded.limit.measure
    return not (measure.is_hours or measure.is_amount) and measure is not Measure.GANGS
