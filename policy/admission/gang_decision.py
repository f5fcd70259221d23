"""The decision about a gang: made now or taken over from an earlier member; its sentences. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from uuid import UUID

from policy.admission.basis import NO_BASIS, Basis
from policy.admission.charge_request import ChargeRequest, paying_group
from policy.errors import RequestError
from policy.quotas.admission import AdmissionDecision
from policy.quotas.charge import Charge
from policy.rules.decision import Outcome, RuleDecision, class_text
from policy.rules.matching import Matcher
from policy.submission import ClassName, GroupName, Occupancy
from policy.wording import quote

POD_GROUP_PATH: Final = "spec.schedulingGroup.podGroupName"
LEAF_CELLS_MARK: Final = "cellgate.io/leaf-cells"
"""The annotation by which a PodGroup says what each of its pods asks for."""
PREFIX: Final = "cellgate: "
"""Starts every warning, so that users see where it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangDecision:
    """The class of a gang, the group that pays, and whether the gang waits for quota."""

    admission: AdmissionDecision
    decision_id: UUID
    final_class: ClassName
    """The class of the pod."""
    group: GroupName | None
    """The group that pays for the gang."""
    effective_class: ClassName | None = None
    """The class of the gang, if it is above the pod's class."""
    rises_to: ClassName | None = None
    """The class that quotas keep from a gang that runs beyond them."""
    is_new: bool = True
    """Whether this pod led to the decision; False if a member before it did."""
    is_queued: bool = False
    """Of an earlier decision: whether the gang waits for quota."""
    is_running: bool = False
    """Of an earlier decision: whether pods of the gang were seen."""
    basis: Basis = field(default=NO_BASIS, compare=False, repr=False)
    """What the decision depended on."""

    @property
    def outcome(self) -> Outcome:
        """What happens to the pod."""
        if self.is_new:
            return self.admission.outcome
        return Outcome.QUEUED if self.is_queued else Outcome.ADMITTED

    @property
    def gang_class(self) -> ClassName:
        """The class of the gang."""
        return self.effective_class or self.final_class

    @property
    def is_lowered(self) -> bool:
        """Whether the gang gets a lower class than it asked for."""
        is_admitted = self.outcome is not Outcome.REFUSED
        return is_admitted and self.gang_class != self.admission.rules.requested_class

    @property
    def is_degraded(self) -> bool:
        """Whether it was made without the ledger."""
        return bool(self.admission.notes)

    def explain(self) -> tuple[str, ...]:
        """Explain the decision in full, one or two sentences per element."""
        if self.is_new:
            return self.admission.explain()
        return (f"{self.admission.rules.asked}.", f"The {self._earlier}.", *self.admission.notes)

    def format_warnings(self) -> tuple[str, ...]:
        """Write the lines that kubectl shows as `Warning:`."""
        if self.is_new:
            return self.admission.format_warnings()
        is_worse = self.is_lowered or self.is_queued
        lines = (self._earlier, *self.admission.notes) if is_worse else self.admission.notes
        return tuple(f"{PREFIX}{line}" for line in lines)

    @property
    def _earlier(self) -> str:
        """The decision about the gang that a member before this one led to, in words."""
        submission = self.admission.rules.submission
        asked = f" instead of {class_text(submission.requested_class)}" if self.is_lowered else ""
        waits = " and waits for quota" if self.is_queued else ""
        has = f"has {class_text(self.gang_class)}{asked}{waits}"
        return f"gang {submission.gang} {has} by decision {self.decision_id}"


def apply_rules(
    request: ChargeRequest, usage: Occupancy | None, *, matcher: Matcher | None = None
) -> RuleDecision:
    """Apply the rules; None means that usage is unknown.

    `matcher` says which rules match names; None matches them by their texts.
    """
    policy, highest = request.policy, request.highest_fixed
    decide = partial(policy.rules.decide, usage=usage, classes=policy.classes, matcher=matcher)
    rules = decide(request.submission)
    if highest is None or not policy.classes.is_lower(highest, rules.final_class):
        return rules
    # The author of its PodGroup chose a lower class.
    lower = decide(replace(request.submission, requested_class=highest))
    return replace(lower, matches=lower.matches.merged(rules.matches))


def decide_now(
    request: ChargeRequest, admission: AdmissionDecision, *, basis: Basis = NO_BASIS
) -> GangDecision:
    """Return a new decision about a gang."""
    return GangDecision(
        admission=admission,
        decision_id=request.decision,
        final_class=(pod_class := request.pod_class(admission.final_class)),
        group=request.group_name,
        effective_class=None if pod_class == admission.final_class else admission.final_class,
        rises_to=admission.rises_to,
        basis=basis,
    )


def follow_charge(
    request: ChargeRequest,
    held: Charge,
    admission: AdmissionDecision,
    *,
    is_queued: bool = False,
    is_running: bool = False,
) -> GangDecision:
    """Return the gang's earlier decision for one more member.

    Raises RequestError if the member does not match the gang.
    """
    _check_same_gang(request, held, is_running=is_running)
    return GangDecision(
        admission=admission,
        decision_id=held.decision,
        final_class=(final_class := _class_of_member(request, held)),
        group=held.group,
        effective_class=None if final_class == held.class_name else held.class_name,
        rises_to=held.rises_to,
        is_new=False,
        is_queued=is_queued,
        is_running=is_running,
    )


def _class_of_member(request: ChargeRequest, held: Charge) -> ClassName:
    """Return the class of one more pod: the gang's, but never a higher one than it may have.

    A gang that was raised has a higher class than its first pods, and than its PodGroup.
    """
    if held.raised_from is None:
        return request.pod_class(held.class_name)
    asked = request.fixed_class or request.submission.requested_class
    return asked if request.policy.classes.is_lower(asked, held.class_name) else held.class_name


def check_fixed_class(request: ChargeRequest, final_class: ClassName) -> None:
    """Raise RequestError if the pods of a gang would have another class than its PodGroup."""
    fixed = request.fixed_class
    if fixed is None or request.pod_class(final_class) == fixed:
        return
    message = f"would have class {quote(final_class)}, but its PodGroup has {quote(fixed)}"
    own = request.member_leaf_count or request.submission.leaf_count
    asks = f'with the annotation {LEAF_CELLS_MARK}: "{own}", or with class {quote(final_class)}'
    hint = f"delete the PodGroup and create it again {asks}"
    raise RequestError.at(POD_GROUP_PATH, f"{message}, which cannot be changed; {hint}")


def _check_same_gang(request: ChargeRequest, held: Charge, *, is_running: bool) -> None:
    """Raise RequestError if a pod differs from the member that was charged before it."""
    differences = ", ".join(_differences(request, held, is_running=is_running))
    if differences:
        message = f"gang {request.submission.gang} already exists, and this pod has {differences}"
        hint = "members of a gang must agree; its name can be reused once its pods have ended"
        raise RequestError.at("", f"{message}: {hint}")


def _differences(request: ChargeRequest, held: Charge, *, is_running: bool) -> Iterator[str]:
    submission, classes = request.submission, request.policy.classes
    if submission.user != held.user:
        yield f"submitter {submission.user} instead of {held.user}"
    if all(form.vc != held.vc for form in request.forms):
        yield f"VC {submission.vc} instead of {held.vc}"
    if classes.compare(submission.requested_class, held.raised_from or held.class_name) not in (
        0,
        1,
    ):
        # A member may be lowered to the gang's class, but never raised.
        yield f"class {submission.requested_class} instead of {held.class_name}"
    is_listed = any(form.leaf_type == held.leaf_type for form in request.forms)
    if not is_listed and _is_counted_by_type(request, held):
        yield f"leaf type {submission.leaf_type} instead of {held.leaf_type or 'any'}"
    # The leader counts the pods of a running gang, and a gang whose members may differ is charged
    # for the difference.
    is_counted = is_running and not request.is_alone
    may_be_more = is_counted or request.member_leaf_count is not None
    if submission.leaf_count > held.leaf_count and not may_be_more:
        yield f"{submission.leaf_count} leaf cells for the whole gang instead of {held.leaf_count}"


def _is_counted_by_type(request: ChargeRequest, held: Charge) -> bool:
    """Tell whether a pod's leaf type matters to a charge that was made for another one, or any.

    A gang of any leaf type is not counted under one, so a member may name a type only if no quota
    limits that type.
    """
    leaf_type = request.submission.leaf_type
    if leaf_type is None or held.leaf_type is not None:
        return leaf_type is not None
    group = paying_group(request, held)
    limits = () if group is None else group.limits(held.user)
    return any(limit.leaf_type == leaf_type for limit in limits)
