"""What is asked about a gang, and what comes out: the words between admitting and answering."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from policy.errors import RequestError
from policy.policy import Policy
from policy.quotas.admission import Admission
from policy.quotas.quotas import QuotaGroup
from policy.rules.decision import Outcome, RuleDecision, class_text
from policy.submission import ClassName, GroupName, Submission, Usage
from state.ledger.ledger import Charge


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A gang that one of its pods asks to let in."""

    submission: Submission
    group: QuotaGroup | None
    """The group that pays."""
    decision: UUID
    policy: Policy
    is_alone: bool
    """Whether the gang is this one pod: then there is no other member's decision."""
    fixed_class: ClassName | None = None
    """The class of a native gang's PodGroup, which all its pods must have."""
    member_leaf_count: int | None = None
    """What this pod asks for, where nobody tells what the other members do: they may ask for more
    or less. None where the whole is told, or is this pod."""
    may_grow: bool = False
    """Whether its pods do not say how large the gang is: it may have more members than it needs,
    and who says how many those are may change it."""
    is_group: bool = False
    """Whether it is asked for by the PodGroup itself: then no member is there yet."""

    @property
    def joins(self) -> bool:
        """Tell whether it takes a place in a gang that may have more members than it needs."""
        return self.may_grow and not self.is_group


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gang's decision, and whose it is: this pod's, or that of a member before it."""

    admission: Admission
    decision: UUID
    final_class: ClassName
    group: GroupName | None
    """The group that pays for the gang."""
    is_new: bool = True
    is_queued: bool = False
    """Of a gang that was decided about before: whether it waits for room in its quotas."""
    is_running: bool = False
    """Of a gang that was decided about before: whether pods of it were seen."""

    @property
    def outcome(self) -> Outcome:
        """What happens to the pod."""
        if self.is_new:
            return self.admission.outcome
        return Outcome.QUEUED if self.is_queued else Outcome.ADMITTED

    @property
    def is_lowered(self) -> bool:
        """Tell whether the pod gets a lower class than it asked for."""
        is_in = self.outcome is not Outcome.REFUSED
        return is_in and self.final_class != self.admission.rules.requested_class

    @property
    def is_degraded(self) -> bool:
        """Tell whether it was made without the ledger."""
        return bool(self.admission.notes)

    def explain(self) -> tuple[str, ...]:
        """Tell everything, one sentence or two per element."""
        if self.is_new:
            return self.admission.explain()
        return (f"{self.admission.rules.asked} {self._follows}.", *self.admission.notes)

    def format_warnings(self) -> tuple[str, ...]:
        """Write the lines that kubectl shows as `Warning:`."""
        if self.is_new:
            return self.admission.format_warnings()
        waits = " and waits for room in its quotas" if self.is_queued else ""
        is_told = self.is_lowered or self.is_queued
        lines = [f"this gang {self._follows}{waits}"] if is_told else []
        return tuple(f"cellgate: {line}" for line in (*lines, *self.admission.notes))

    @property
    def _follows(self) -> str:
        return f"has {class_text(self.final_class)} by decision {self.decision}"


def decide(request: Request, usage: Usage | None) -> RuleDecision:
    """Apply the rules; usage that is not given is not known."""
    policy, fixed = request.policy, request.fixed_class
    decision = policy.rules.decide(request.submission, usage=usage, classes=policy.classes)
    if fixed is None or not policy.classes.is_lower(fixed, decision.final_class):
        return decision
    # Its PodGroup was lowered when there was less room, or by its author.
    submission = replace(request.submission, requested_class=fixed)
    return policy.rules.decide(submission, usage=usage, classes=policy.classes)


def decided(request: Request, admission: Admission) -> Verdict:
    """Give a gang what was decided now."""
    return Verdict(
        admission=admission,
        decision=request.decision,
        final_class=admission.final_class,
        group=request.group.name if request.group else None,
    )


def follow(
    request: Request, held: Charge, admission: Admission, *, is_running: bool = False
) -> Verdict:
    """Give a pod what the member before it got; RequestError if the two do not agree."""
    _check_same_gang(request, held, is_running=is_running)
    return Verdict(
        admission=admission,
        decision=held.decision,
        final_class=held.class_name,
        group=held.group,
        is_new=False,
        is_running=is_running,
    )


def charge_of(request: Request, class_name: ClassName) -> Charge:
    """Build the charge of a gang in a class."""
    submission = request.submission
    return Charge(
        decision=request.decision,
        gang=submission.gang,
        user=submission.user,
        group=request.group.name if request.group else None,
        vc=submission.vc,
        class_name=class_name,
        is_high=request.policy.classes.is_high(class_name),
        leaf_type=submission.leaf_type,
        leaf_count=submission.leaf_count,
        places=_places(request),
        gang_size=submission.gang_size,
        leaf_count_each=None if request.may_grow else request.member_leaf_count,
    )


def _places(request: Request) -> int:
    """Return how many members of an open gang may come until its charge must grow."""
    if not request.may_grow:
        return 0
    return request.submission.gang_size - request.joins


def _check_same_gang(request: Request, held: Charge, *, is_running: bool) -> None:
    """Raise RequestError if a pod is not like the member that was charged before it."""
    told = ", ".join(_differences(request, held, is_running=is_running))
    if told:
        hint = "members of a gang must agree; a name can be used again once its pods have ended"
        gang = request.submission.gang
        raise RequestError.at("", f"gang {gang} exists already, and this pod has {told}: {hint}")


def _differences(request: Request, held: Charge, *, is_running: bool) -> Iterator[str]:
    submission, classes = request.submission, request.policy.classes
    if submission.user != held.user:
        yield f"submitter {submission.user} instead of {held.user}"
    if submission.vc != held.vc:
        yield f"VC {submission.vc} instead of {held.vc}"
    if classes.compare(submission.requested_class, held.class_name) not in (0, 1):
        # Lowered it may be; but to join would raise this one.
        yield f"class {submission.requested_class} instead of {held.class_name}"
    if submission.leaf_type != held.leaf_type and _is_counted_by_type(request, held):
        yield f"leaf type {submission.leaf_type} instead of {held.leaf_type or 'any'}"
    # What a larger gang of running pods really holds is for the leader to say, and one whose
    # members may differ is charged for more.
    is_counted = is_running and not request.is_alone
    may_be_more = is_counted or request.member_leaf_count is not None
    if submission.leaf_count > held.leaf_count and not may_be_more:
        yield f"{submission.leaf_count} leaf cells for the whole gang instead of {held.leaf_count}"


def _is_counted_by_type(request: Request, held: Charge) -> bool:
    """Tell whether a pod's leaf type matters to a charge that was made for another one, or any.

    Of any type it may be, unless the quotas limit it: its gang is not counted among that type.
    """
    leaf_type = request.submission.leaf_type
    if leaf_type is None or held.leaf_type is not None:
        return leaf_type is not None
    group = paying_group(request, held)
    limits = () if group is None else group.limits(held.user)
    return any(limit.leaf_type == leaf_type for limit in limits)


def paying_group(request: Request, held: Charge) -> QuotaGroup | None:
    """Return the group that pays for a charged gang, as its quotas are now."""
    return None if held.group is None else request.policy.quotas.group(held.group)


def leaf_count_with(request: Request, held: Charge) -> int:
    """Say what a charged gang must be charged for, at least, with one more member.

    Each member that is still to come was taken to be like the first; one that asks for more takes
    the place of one of those. Where that is not known any more, because the leader has changed the
    charge, each has one leaf cell in it or more: to add the others is never too little, but for a
    gang like its largest. Of a gang that has more members than the first said, this may be one of
    those for whom nobody has paid.
    """
    own, most = request.member_leaf_count, request.submission.leaf_count
    if own is None or request.may_grow:
        return max(held.leaf_count, most)
    if held.gang_size is not None and request.submission.gang_size > held.gang_size:
        return held.leaf_count + own
    if held.is_reckoned and held.leaf_count_each is not None:
        return held.leaf_count + max(0, own - held.leaf_count_each)
    return max(held.leaf_count, min(held.leaf_count + own - 1, most))


def with_member(request: Request, held: Charge) -> Charge:
    """Return what a charged gang must be charged for with one more member, as the ledger does."""
    held = replace(held, leaf_count=leaf_count_with(request, held))
    if not request.joins:
        return held
    if held.places:
        return replace(held, places=held.places - 1)
    return replace(held, leaf_count=held.leaf_count + (request.member_leaf_count or 0))
