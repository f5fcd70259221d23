"""What is asked about a gang, and what comes out: the words between admitting and answering."""

from dataclasses import dataclass
from uuid import UUID

from policy.admission import Admission
from policy.decision import Outcome, class_text
from policy.errors import RequestError
from policy.policies import Policy
from policy.quotas import QuotaGroup
from policy.submission import ClassName, GangKey, Submission
from state.ledger import Charge


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
    may_grow: bool = False
    """Whether somebody else than its pods says how large the gang is, and may change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gang's decision, and whose it is: this pod's, or that of a member before it."""

    admission: Admission
    decision: UUID
    final_class: ClassName
    is_new: bool = True

    @property
    def outcome(self) -> Outcome:
        """What happens to the pod."""
        return self.admission.outcome if self.is_new else Outcome.ADMITTED

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
        lines = [f"this gang {self._follows}"] if self.is_lowered else []
        return tuple(f"cellgate: {line}" for line in (*lines, *self.admission.notes))

    @property
    def _follows(self) -> str:
        return f"has {class_text(self.final_class)} by decision {self.decision}"


def decided(request: Request, admission: Admission) -> Verdict:
    """Give a gang what was decided now."""
    return Verdict(
        admission=admission, decision=request.decision, final_class=admission.final_class
    )


def follow(request: Request, held: Charge, admission: Admission) -> Verdict:
    """Give a pod what the member before it got."""
    _check_same_gang(request, held)
    return Verdict(
        admission=admission, decision=held.decision, final_class=held.class_name, is_new=False
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
    )


def _check_same_gang(request: Request, held: Charge) -> None:
    """Raise RequestError if a pod is not like the member that was charged before it."""
    submission = request.submission
    leaf_count = held.leaf_count if request.may_grow else submission.leaf_count
    mine = (submission.user, submission.vc, leaf_count, submission.leaf_type)
    if mine != (held.user, held.vc, held.leaf_count, held.leaf_type):
        raise RequestError.at("", _difference(submission.gang, submission, held))


def _difference(gang: GangKey, submission: Submission, held: Charge) -> str:
    parts = (
        ("submitter", submission.user, held.user),
        ("VC", submission.vc, held.vc),
        ("leaf cells of the gang", submission.leaf_count, held.leaf_count),
        ("leaf type", submission.leaf_type or "any", held.leaf_type or "any"),
    )
    told = [f"{name} {mine} instead of {theirs}" for name, mine, theirs in parts if mine != theirs]
    hint = "members of a gang must agree; a name can be used again once its pods have ended"
    return f"gang {gang} exists already, and this pod has {', '.join(told)}: {hint}"
