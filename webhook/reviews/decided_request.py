"""What a pod asked for when it was decided upon, in one line. Pure.

    2 leaf cells, main=2 nvidia.com/gpu, cellgate.io/gang=bert, cellgate.io/gang-size=4

The line is written on the pod. Another webhook may be at the pod after ours and make it ask for
something else, or for leaf cells in the first place: then the pod and the line differ, or there is
none, and the pod is refused, since nobody was charged for what it would use. The API server itself
looks for the parts of the line (match conditions of our manifests), and asks us only if one is
missing, or if there is something to tell: so every part is made of what is written in the pod.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube import marks
from kube.read.leaf_demand import MATCHED_RESOURCES
from kube.read.pods import ManagedPod
from kube.values.objects import containers_of, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.wording import quote

_BETWEEN: Final = ", "
_HINT: Final = (
    "another webhook changed it after Cellgate had decided; "
    'the name of its configuration must come before "cellgate" in the alphabet'
)


def describe_request(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Say what a pod asks for, as far as it says so itself."""
    parts = [f"{pod.leaf_count} leaf cells", *_devices(obj), *_gang_marks(obj)]
    return _BETWEEN.join(parts)


def check_decided(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Return the id of the decision about a pod. Raises RequestError if it is about another one."""
    annotations = marks_of(obj, "annotations")
    decision = annotations.get(marks.DECISION_ANNOTATION)
    if not isinstance(decision, str):
        path = f"metadata.annotations[{marks.DECISION_ANNOTATION}]"
        raise RequestError.at(path, f"is missing from a pod that asks for leaf cells: {_HINT}")
    problems = [*_differences(obj, pod, annotations)]
    if pod.is_uncharged and not pod.is_gated:
        message = f"has no {marks.QUEUED_GATE}, though its quota is used up"
        problems.append(Problem("spec.schedulingGates", f"{message}: another webhook lifted it"))
    if problems:
        raise RequestError(problems)
    return decision


def _differences(
    obj: Mapping[str, Any], pod: ManagedPod, annotations: Mapping[str, Any]
) -> Iterator[Problem]:
    given = mapping(obj.get("spec")).get("priorityClassName") or ""
    compared = {
        "spec.priorityClassName": (annotations.get(marks.CLASS_ANNOTATION), given),
        "spec": (annotations.get(marks.REQUEST_ANNOTATION), describe_request(obj, pod)),
    }
    for path, (was, now) in compared.items():
        if was != now:
            told = f"was {_show(was, beside=now)} and is {_show(now, beside=was)}: {_HINT}"
            yield Problem(path, told)


def _show(line: object, *, beside: object) -> str:
    """Show the parts of a line that another one has not."""
    others = frozenset(str(beside).split(_BETWEEN))
    return quote(_BETWEEN.join(part for part in str(line).split(_BETWEEN) if part not in others))


def _devices(obj: Mapping[str, Any]) -> Iterator[str]:
    for container in containers_of(mapping(obj.get("spec"))):
        limits = mapping(mapping(container.get("resources")).get("limits"))
        for resource in sorted(MATCHED_RESOURCES & limits.keys()):
            yield f"{container.get('name')}={limits[resource]} {resource}"


def _gang_marks(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a pod is to run and with whom; the group that pays is written by us."""
    labels, annotations = marks_of(obj, "labels"), marks_of(obj, "annotations")
    told = {
        **{key: value for key, value in annotations.items() if key in marks.GANG_MARKS},
        **{key: value for key, value in labels.items() if _is_told(key)},
    }
    group = mapping(mapping(obj.get("spec")).get("schedulingGroup")).get("podGroupName")
    if group is not None:
        told["schedulingGroup"] = group
    for key in sorted(told):
        yield f"{key}={_as_one_part(told[key])}"


def _as_one_part(value: object) -> str:
    """Write what anybody may have written, so that it cannot look like another part."""
    return str(value).replace("%", "%25").replace(",", "%2C")


def _is_told(label: object) -> bool:
    is_ours = isinstance(label, str) and label.startswith(marks.DOMAIN)
    return label != marks.GROUP_LABEL and (is_ours or label in marks.GANG_MARKS)
