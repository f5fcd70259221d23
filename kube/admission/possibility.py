"""What can never start is told when it is created, or refused if the Rules document says so.

The checks are in `policy.feasibility`; here is what a pod or a Job asks for. The class matters: an
opportunistic gang may use cells that its VC was not promised. It is asked for only if it makes a
difference, since nearly all gangs are possible in any class.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kube.admission.pod_request import PodRequest
from kube.read.gangs import DeclaredGang, GangForm
from kube.read.managed_pod import ManagedPod
from kube.values.objects import mapping
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import PREFIX, GangDecision
from policy.capacity import Capacity
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
from policy.identity.identity import BUILT_IN_TEMPLATES
from policy.rules.decision import WARNING_CHARS, Outcome
from policy.submission import ClassName
from policy.wording import plain

_JOB_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("batch/v1", "Job"): ("spec",),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec"),
}
"""Where the spec of a Job is, by the kind of the object."""
_KINDS: Final = frozenset((one.api_version, one.kind) for one in BUILT_IN_TEMPLATES)
"""Kinds that make all their pods from one template."""


class Possibility:
    """Finds what can never start."""

    def __init__(
        self,
        capacity: Callable[[], Capacity | None],
        *,
        preview: Callable[[ChargeRequest], GangDecision],
    ) -> None:
        """`capacity` says how large gangs can be; None if that is unknown."""
        self._capacity = capacity
        self._preview = preview

    def check(self, request: PodRequest, *, are_alike: bool, may_refuse: bool) -> list[str]:
        """Return warnings about a gang that can never start.

        `are_alike` says that all members of the gang are like this pod; otherwise others may have
        fewer leaf cells, or none. Raises RequestError instead if the Rules document says so and
        `may_refuse`.
        """
        wanted = replace(_wanted(request.pod, are_alike=are_alike), amounts=request.amounts)
        # What is possible in a high, guaranteed class is possible in any class.
        if not self._find(request, replace(wanted, is_guaranteed=True), is_high=True):
            return []
        decision = self._preview(request.charge)
        if decision.outcome is Outcome.REFUSED or not decision.is_new:
            return []
        priority = _cell_priority(request, decision.gang_class)
        found = self._find(
            request,
            replace(wanted, is_guaranteed=priority > OPPORTUNISTIC),
            is_high=request.charge.policy.classes.is_high(decision.gang_class),
        )
        return tell_never(found, refuses=may_refuse and request.charge.policy.refuses_impossible)

    def _find(self, request: PodRequest, wanted: Wanted, *, is_high: bool) -> list[str]:
        charge, capacity = request.charge, self._capacity()
        found = list(find_never(wanted, capacity)) if capacity is not None else []
        if charge.group is not None:
            limits = charge.quotas
            found += find_over_limit(charge.group, limits, wanted=wanted, is_high=is_high)
        return found


def tell_never(found: list[str], *, refuses: bool) -> list[str]:
    """Make reasons warnings, or one refusal."""
    if found and refuses:
        raise RequestError.at("", f"{NEVER}{'; '.join(found)}")
    return [warn(f"{NEVER}{one}") for one in found]


def makes_all_members(obj: Mapping[str, Any]) -> bool:
    """Tell whether an object makes all members of its gang from one template.

    Another workload that owns it may make other members.
    """
    return _kind(obj) in _KINDS and not mapping(obj.get("metadata")).get("ownerReferences")


def check_job(obj: Mapping[str, Any], gang: DeclaredGang | None, *, refuses: bool) -> Iterator[str]:
    """Yield warnings about a Job whose pods and gang do not match, or whose deadline runs early.

    `gang` is the gang of its pods. Raises RequestError if it is never complete and `refuses`.
    """
    path = _JOB_SPECS.get(_kind(obj))
    if path is None or not makes_all_members(obj):
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


def _wanted(pod: ManagedPod, *, are_alike: bool) -> Wanted:
    """Return what a gang needs at least to start; HiveD's annotation lists all members."""
    is_total = pod.hived is not None or (are_alike and pod.gang.form is GangForm.CELLGATE)
    needed = (pod.gang_leaf_count if is_total else None) or pod.leaf_count
    if pod.gang.min_size is not None:
        needed = min(needed, pod.gang.min_size * pod.leaf_count)
    return Wanted(
        vc=pod.vc,
        leaf_type=None if pod.hived and pod.hived.pinned_cell else pod.leaf_type,
        leaf_count=needed,
        largest_member=pod.leaf_count,
        is_guaranteed=True,
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


def _kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    return str(obj.get("apiVersion")), str(obj.get("kind"))


def _number(value: object, default: int | None) -> int | None:
    """Return a whole number; the API server refuses anything else after us."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default
