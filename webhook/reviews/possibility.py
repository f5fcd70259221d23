"""What can never start is told when it is created, or refused if the Rules document says so.

The checks are in `policy.feasibility`; here is what a pod or a Job asks for. The class matters: an
opportunistic gang may use cells that its VC was not promised. It is asked for only if it makes a
difference, since nearly all gangs are possible in any class.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kube.read.gangs import DeclaredGang, GangForm
from kube.read.managed_pod import ManagedPod
from kube.values.objects import mapping
from policy.classes import OPPORTUNISTIC
from policy.errors import RequestError
from policy.feasibility import (
    NEVER,
    JobShape,
    Wanted,
    describe_deadline,
    find_incomplete,
    find_never,
    find_over_limit,
    find_surplus,
)
from policy.rules.decision import WARNING_CHARS, Outcome
from policy.submission import ClassName
from policy.wording import plain
from webhook.admission.charge_request import ChargeRequest
from webhook.admission.gang_decision import PREFIX, GangDecision
from webhook.node_facts import NodeFacts
from webhook.reviews.pod_request import PodRequest

_JOB_SPECS: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec"),
}
"""Where the spec of a Job is, by the kind of the object."""


class Possibility:
    """Finds what can never start."""

    def __init__(
        self, facts: NodeFacts, *, preview: Callable[[ChargeRequest], GangDecision]
    ) -> None:
        self._facts = facts
        self._preview = preview

    def check(self, request: PodRequest, *, may_refuse: bool) -> list[str]:
        """Return warnings about a gang that can never start.

        Raises RequestError instead if the Rules document says so and `may_refuse`.
        """
        if not (self._find(request, None) or self._find(request, OPPORTUNISTIC)):
            return []
        decision = self._preview(request.charge)
        if decision.outcome is Outcome.REFUSED or not decision.is_new:
            return []
        priority = _cell_priority(request, decision.final_class)
        found = self._find(request, priority)
        return tell_never(found, refuses=may_refuse and request.charge.policy.refuses_impossible)

    def _find(self, request: PodRequest, priority: int | None) -> list[str]:
        """Find the reasons in a class of this cell priority; None stands for a high class."""
        charge = request.charge
        wanted = _wanted(request.pod, is_guaranteed=priority is None or priority > OPPORTUNISTIC)
        capacity = self._facts.capacity
        found = list(find_never(wanted, capacity)) if capacity is not None else []
        if charge.group is not None:
            is_high = priority is None or charge.policy.classes.is_high(
                charge.submission.requested_class
            )
            limits = charge.quotas
            found += find_over_limit(charge.group, limits, wanted=wanted, is_high=is_high)
        return found


def tell_never(found: list[str], *, refuses: bool) -> list[str]:
    """Make reasons warnings, or one refusal."""
    if found and refuses:
        raise RequestError.at("", f"{NEVER}{'; '.join(found)}")
    return [warn(f"{NEVER}{one}") for one in found]


def check_job(obj: Mapping[str, Any], gang: DeclaredGang | None, *, refuses: bool) -> Iterator[str]:
    """Yield warnings about a Job whose pods and gang do not match, or whose deadline runs early.

    `gang` is the gang of its pods. Raises RequestError if it is never complete and `refuses`. A Job
    that another workload owns may hold only some members of the gang.
    """
    path = _JOB_SPECS.get(str(obj.get("kind")))
    if path is None or mapping(obj.get("metadata")).get("ownerReferences"):
        return
    spec: Mapping[str, Any] = obj
    for key in path:
        spec = mapping(spec.get(key))
    if gang is not None and gang.form is GangForm.CELLGATE and gang.size is not None:
        shape = JobShape(
            gang_size=gang.size,
            gang_min=gang.min_size,
            parallelism=_number(spec.get("parallelism"), 1) or 0,
            completions=_number(spec.get("completions"), None),
        )
        yield from tell_never(list(find_incomplete(shape)), refuses=refuses)
        yield from map(warn, find_surplus(shape))
    deadline = _number(spec.get("activeDeadlineSeconds"), None)
    if deadline is not None:
        yield warn(describe_deadline(deadline, path=".".join(path)))


def _wanted(pod: ManagedPod, *, is_guaranteed: bool) -> Wanted:
    needed = pod.gang_leaf_count or pod.leaf_count
    if pod.gang.min_size is not None:
        needed = min(needed, pod.gang.min_size * pod.leaf_count)
    return Wanted(
        vc=pod.vc,
        leaf_type=None if pod.hived and pod.hived.pinned_cell else pod.leaf_type,
        leaf_count=needed,
        largest_member=pod.leaf_count,
        is_guaranteed=is_guaranteed,
    )


def _cell_priority(request: PodRequest, final_class: ClassName) -> int:
    """Return the priority that the engine will see."""
    classes, hived = request.charge.policy.classes, request.pod.hived
    if not classes.entries:
        return hived.priority if hived else 0
    priority = classes.cell_priority(final_class)
    return OPPORTUNISTIC if priority is None else priority


def warn(line: str) -> str:
    """Make a line that kubectl shows as `Warning:`."""
    return plain(f"{PREFIX}{line}", limit=WARNING_CHARS)


def _number(value: object, default: int | None) -> int | None:
    """Return a whole number; the API server refuses anything else after us."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default
