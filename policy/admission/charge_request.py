"""What one pod asks for on behalf of its gang, the charge that covers it, and its limits. Pure."""

from dataclasses import dataclass, field, replace
from uuid import UUID

from policy.policy import Policy
from policy.queues.alternatives import Alternative, GangTerms, all_terms
from policy.quotas.charge import Charge, CpuAndMemory
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.quota_table import QuotaGroup
from policy.submission import ClassName, GroupName, Submission, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """A gang that one of its pods asks to admit."""

    submission: Submission
    group: QuotaGroup | None
    """The group that pays."""
    decision: UUID
    """The id of the decision, should this request lead to a new one."""
    policy: Policy
    is_alone: bool
    """Whether the gang is this one pod, so that no other member can have a decision."""
    fixed_class: ClassName | None = None
    """The class of a native gang's PodGroup, which all its pods must have."""
    highest_class: ClassName | None = None
    """The class that the PodGroup asked for, if it is stored with a lower one: the gang may have
    up to this class, while its pods have that of the PodGroup."""
    member_leaf_count: int | None = None
    """What this pod asks for, where its gang's other members may ask for more or less. None where
    the total is specified, or is this pod's."""
    member: CpuAndMemory = field(default_factory=CpuAndMemory)
    """What this pod requests beside its leaf cells."""
    own_leaf_count: int = 0
    """The leaf cells of this pod."""
    may_grow: bool = False
    """Whether the pods do not specify the gang's size. Then only a minimum is known, which may
    change, and more members may come."""
    is_group: bool = False
    """Whether the request comes from the PodGroup itself, before any member exists."""
    late: tuple[int, ...] = ()
    """The leaf cells of each member that is created only after others are Ready."""
    alternatives: tuple[Alternative, ...] = ()
    """Other forms in which the gang may run."""
    is_helper: bool = False
    """Whether the pod adds nothing to what its gang holds."""
    shapes: tuple[str, ...] = ()
    """The shapes that apply to the pod: what it asks for is what they leave of it."""

    @property
    def forms(self) -> tuple[GangTerms, ...]:
        """What the gang asks for, and what it asks for by each alternative."""
        asked = GangTerms(vc=self.submission.vc, leaf_type=self.submission.leaf_type)
        return all_terms(asked, self.alternatives)

    @property
    def group_name(self) -> GroupName | None:
        """The name of the group that pays."""
        return self.group.name if self.group else None

    @property
    def highest_fixed(self) -> ClassName | None:
        """The highest class that its PodGroup lets a gang have; None without a PodGroup."""
        fixed, highest = self.fixed_class, self.highest_class
        if fixed is None or highest is None:
            return fixed
        return highest if self.policy.classes.is_lower(fixed, highest) else fixed

    def pod_class(self, gang_class: ClassName) -> ClassName:
        """Return the class of the pods of a gang: that of their PodGroup, where that is lower."""
        fixed = self.fixed_class
        is_raised = fixed is not None and self.policy.classes.is_lower(fixed, gang_class)
        return fixed if fixed is not None and is_raised else gang_class

    @property
    def quotas(self) -> tuple[Limit, ...]:
        """The limits of the group that pays, for this submitter."""
        return self.group.limits(self.submission.user) if self.group else ()

    @property
    def joins(self) -> bool:
        """Whether it takes a place in a gang that may have more members than its minimum."""
        return self.may_grow and not self.is_group


def build_charge(
    request: ChargeRequest, class_name: ClassName, *, rises_to: ClassName | None = None
) -> Charge:
    """Build the charge of a new gang in a class; `rises_to` is the class beyond its quotas."""
    submission, pod_class = request.submission, request.pod_class(class_name)
    return Charge(
        decision=request.decision,
        gang=submission.gang,
        user=submission.user,
        group=request.group_name,
        vc=submission.vc,
        class_name=class_name,
        is_high=request.policy.classes.is_high(class_name),
        leaf_type=submission.leaf_type,
        leaf_count=submission.leaf_count,
        places=_places(request),
        gang_size=submission.gang_size,
        leaf_count_each=None if request.may_grow else request.member_leaf_count,
        rises_to=rises_to,
        raised_from=None if pod_class == class_name else pod_class,
        cpu_millis=(total := _cpu_and_memory(submission)).cpu_millis,
        memory_bytes=total.memory_bytes,
        each=total.per(submission.leaf_count),
    )


def _cpu_and_memory(submission: Submission) -> CpuAndMemory:
    return CpuAndMemory(cpu_millis=submission.cpu_millis, memory_bytes=submission.memory_bytes)


def _places(request: ChargeRequest) -> int:
    """Return what a new charge covers for members that do not exist yet (`Charge.places`)."""
    if request.may_grow:
        return request.submission.gang_size - request.joins
    own = request.member_leaf_count or 0
    return sum(max(0, leaf_count - own) for leaf_count in request.late)


def reserved_for(request: ChargeRequest, held: Charge) -> int:
    """Return the leaf cells that a charge reserves for a member that is created late; 0 if none.

    They are what the member asks for beyond the first one. A charge does not reserve more than it
    was made for: what is taken is not there for another member.
    """
    own, each = request.member_leaf_count, held.leaf_count_each
    if own is None or each is None or request.may_grow or own not in request.late:
        return 0
    beyond = max(0, own - each)
    return beyond if beyond <= held.places else 0


def paying_group(request: ChargeRequest, held: Charge) -> QuotaGroup | None:
    """Return the group that pays for a charged gang, with its current quotas."""
    return None if held.group is None else request.policy.quotas.group(held.group)


def leaf_count_with(request: ChargeRequest, held: Charge) -> int:
    """Return the minimum charge of a charged gang with one more member.

    The first charge assumes that all members are like the first. A member that asks for more takes
    the place of one of those. After the leader has changed the charge, that assumption is lost, but
    each member has at least one leaf cell in it: adding the rest is never too little, except for a
    gang whose members are all like its largest. A member beyond the size that the first one
    specified is not covered at all.
    """
    own, most = request.member_leaf_count, request.submission.leaf_count
    if own is None or request.may_grow:
        return max(held.leaf_count, most)
    if held.gang_size is not None and request.submission.gang_size > held.gang_size:
        return held.leaf_count + own
    if reserved_for(request, held):
        return held.leaf_count
    if held.covers_each_member and held.leaf_count_each is not None:
        return held.leaf_count + max(0, own - held.leaf_count_each)
    return max(held.leaf_count, min(held.leaf_count + own - 1, most))


def requested_beyond(request: ChargeRequest, held: Charge) -> CpuAndMemory:
    """Return the CPU and memory of a pod beyond what the charge assumes of such a member.

    Without an assumption, after the leader has made the charge, it is that of the average member.
    """
    if request.is_group:
        return CpuAndMemory()
    each = held.each
    if each is None:
        each = held.cpu_and_memory.per(held.leaf_count)
    return request.member.beyond(each.times(request.own_leaf_count))


def with_member(request: ChargeRequest, held: Charge) -> Charge:
    """Return the charge of a charged gang with one more member, as the ledger would compute it."""
    held = held.with_more(requested_beyond(request, held))
    reserved = reserved_for(request, held)
    held = held.resized(leaf_count_with(request, held))
    if not request.joins:
        return replace(held, places=held.places - reserved)
    if held.places:
        return replace(held, places=held.places - 1)
    return held.resized(held.leaf_count + (request.member_leaf_count or 0))


def impossible_limits(user: UserName) -> tuple[Limit, ...]:
    """Return limits that no new or larger charge fits."""
    measures = (Measure.LEAF_CELLS, Measure.LEAF_CELLS_HIGH)
    return tuple(Limit(scope=Scope(user), measure=measure, most=-1) for measure in measures)
