"""The alternatives of a new pod: whether its submitter may use each of them. Pure.

Every alternative must be as admissible as what the pod asks for: its VC is open to the submitter,
and rules give it no lower class. So the planner may choose any of them without asking again.

A charge counts under one leaf type. It follows the gang when the gang is placed by an alternative;
the limit of the new leaf type is not compared again. So an alternative with a leaf type that the
paying group limits is refused: two waiting gangs could exceed that limit together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kube import marks
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.values.objects import marks_of
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import apply_rules
from policy.documents.alternatives_list import parse_alternatives
from policy.errors import Problem, RequestError
from policy.identity.identity import Identity
from policy.queues.alternatives import Alternative
from policy.rules.decision import Outcome
from policy.submission import GroupName, Occupancy, UserName
from policy.wording import name, quote

_PATH: Final = f"metadata.annotations[{marks.ALTERNATIVES_ANNOTATION}]"
_OWN_FORMS: Final = (GangForm.CELLGATE, GangForm.SINGLE)


def check_alternatives(
    obj: Mapping[str, Any],
    pod: ManagedPod,
    *,
    identity: Identity,
    user: UserName,
    groups: tuple[GroupName, ...],
) -> None:
    """Raise RequestError if a new pod lists an alternative that it cannot have."""
    text = marks_of(obj, "annotations").get(marks.ALTERNATIVES_ANNOTATION)
    if text is None:
        return
    if pod.gang.form not in _OWN_FORMS or pod.hived is not None:
        told = "single pods and gangs by the labels of Cellgate may have alternatives"
        raise RequestError.at(_PATH, f"only {told}, not a gang of the form {pod.gang.form}")
    for index, one in enumerate(parse_alternatives(str(text), path=_PATH)):
        if one.vc is not None:
            path = f"{_PATH}[{index}].vc"
            identity.check_vc(one.vc, user=user, groups=groups, path=path)
        problem = _too_many(one, pod)
        if problem is not None:
            raise RequestError.at(f"{_PATH}[{index}].minMembers", problem)


def _too_many(one: Alternative, pod: ManagedPod) -> str | None:
    """Say why a gang cannot start with so few members."""
    size, least = pod.gang.size or 1, pod.gang.min_size
    if one.min_members is None:
        return None
    if least is not None and one.min_members >= least:
        return f"must be less than {marks.GANG_MIN_LABEL}, which is {least}"
    if one.min_members >= size:
        return f"must be less than {marks.GANG_SIZE_LABEL}, which is {size}"
    return None


def check_forms(request: ChargeRequest, usage: Occupancy | None) -> None:
    """Raise RequestError if rules or quotas treat an alternative unlike what the pod asks for.

    `usage` is what the submitter holds; None if that is unknown.
    """
    problems = [
        Problem(f"{_PATH}[{index}]", problem)
        for index, one in enumerate(request.alternatives)
        for problem in _unequal(request, one, usage)
    ]
    if problems:
        raise RequestError(problems)


def _unequal(request: ChargeRequest, one: Alternative, usage: Occupancy | None) -> Iterator[str]:
    submission = request.submission
    form = replace(
        submission,
        vc=one.vc or submission.vc,
        leaf_type=one.leaf_type or submission.leaf_type,
    )
    asked = apply_rules(request, usage)
    found = apply_rules(replace(request, submission=form), usage)
    if asked.outcome is not Outcome.REFUSED and found.outcome is Outcome.REFUSED:
        yield f"{one} would be refused: {found.format_refusal()}"
    elif request.policy.classes.is_lower(found.final_class, asked.final_class):
        lowered = f"class {quote(found.final_class)} instead of {quote(asked.final_class)}"
        yield f"rules give {lowered} to {one}; ask for that class, or remove the alternative"
    for limit in request.quotas:
        if limit.leaf_type is not None and limit.leaf_type == one.leaf_type:
            yield (
                f"group {name(request.group_name or '')} has a limit on leaf cells of type "
                f"{one.leaf_type}, and a gang is charged for one leaf type when it is created; "
                "submit a gang for that leaf type, or ask an admin to remove the limit"
            )
            return
