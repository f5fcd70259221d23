"""Gangs that grow: a member asks for more than its gang is charged for. Pure.

Who pays for a gang was decided with its first member. Whatever group a later one names, it is that
group's limits that the gang must stay within: limits of another say nothing about its charge.

Nor does a gang get past the rules by being small at first: with what it grows to, they must still
let it have its class. It cannot be lowered any more, since its members run.
"""

from dataclasses import dataclass, replace

from policy.errors import RequestError
from policy.quotas.admission import Admission, OverQuota
from policy.quotas.limits import Exceeded, Limit, Measure
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import ClassName, Usage
from policy.wording import quote
from state.ledger.ledger import Charge
from webhook.admission.usage_limits import guards, probes
from webhook.admission.verdict import Request, Verdict, decide, decided, paying_group


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What the rules say about a gang that asks for more."""

    decision: RuleDecision
    is_refused: bool
    """Whether they refuse it, or would have lowered it."""
    grown: Charge

    @property
    def ranges(self) -> tuple[Limit, ...]:
        """Return the usage in which they say so; for a gang that may not grow, none."""
        if self.is_refused:
            return probes(self.grown.user)
        return guards(self.grown, self.decision.valid)


def judge_growth(request: Request, held: Charge, leaf_count: int, *, usage: Usage | None) -> Growth:
    """Apply the rules as if the gang had asked for so much to begin with.

    `usage` is what its submitter holds, this gang included as it is.
    """
    submission = replace(request.submission, leaf_count=leaf_count)
    beside = None if usage is None else _without(usage, held)
    decision = decide(replace(request, submission=submission), beside)
    is_lower = request.policy.classes.is_lower(decision.final_class, held.class_name)
    return Growth(
        decision=decision,
        is_refused=decision.outcome is Outcome.REFUSED or is_lower,
        grown=replace(held, leaf_count=leaf_count),
    )


def refuse_growth(
    request: Request, held: Charge, growth: Growth, *, notes: tuple[str, ...] = ()
) -> Verdict:
    """Refuse a member; RequestError where its gang would have a lower class with it."""
    decision = _told(growth.decision, held)
    if decision.outcome is Outcome.REFUSED:
        return decided(request, Admission(rules=decision, notes=notes))
    has = f"its members have {quote(held.class_name)}, which cannot be changed"
    would = f"with this pod gang {held.gang} would have class {quote(decision.final_class)}, but"
    raise RequestError.at(
        "", " ".join([would, f"{has}:", decision.holdings, *decision.hit_texts()])
    )


def _told(decision: RuleDecision, held: Charge) -> RuleDecision:
    """Tell what the gang has among what is held, and ask for the rest."""
    if decision.usage is None:
        return decision
    usage = Usage(
        occupied=decision.usage.occupied + held.leaf_count,
        occupied_high=decision.usage.occupied_high + held.leaf_count * held.is_high,
    )
    more = decision.submission.leaf_count - held.leaf_count
    submission = replace(decision.submission, leaf_count=more)
    return replace(decision, usage=usage, submission=submission)


def _without(usage: Usage, held: Charge) -> Usage:
    return Usage(
        occupied=max(0, usage.occupied - held.leaf_count),
        occupied_high=max(0, usage.occupied_high - held.leaf_count * held.is_high),
    )


def growth_limits(request: Request, held: Charge) -> tuple[Limit, ...]:
    """Return what a growing gang must stay within; nothing where its class may run beyond."""
    group, classes = paying_group(request, held), request.policy.classes
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
    exceeded = tuple(_beyond(one, held) for one in exceeded)
    asked = next((one.asked for one in exceeded if _is_of_cells(one)), rules.submission.leaf_count)
    over = OverQuota(
        group=held.group,
        outcome=Outcome.REFUSED,
        exceeded=exceeded,
        class_before=verdict.final_class,
        class_after=verdict.final_class,
    )
    rules = replace(rules, submission=replace(rules.submission, leaf_count=asked), hits=())
    return decided(request, replace(verdict.admission, rules=rules, quota=over))


def _beyond(exceeded: Exceeded, held: Charge) -> Exceeded:
    """Tell what the gang has among what is held: the ledger compares it as if it were new."""
    if exceeded.limit.measure.is_hours:
        return exceeded
    has = held.leaf_count if _is_of_cells(exceeded) else 1
    return replace(exceeded, used=exceeded.used + has, asked=max(0, exceeded.asked - has))


def _is_of_cells(exceeded: Exceeded) -> bool:
    measure = exceeded.limit.measure
    return not measure.is_hours and measure is not Measure.GANGS
