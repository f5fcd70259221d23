"""What a pod asked for when it was decided upon, in one line. Pure.

The line is written on the pod. Another webhook may be at the pod after ours and make it ask for
something else, or for leaf cells in the first place: then the pod and the line differ, or there is
none, and the pod is refused, since nobody was charged for what it would use.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.gangs import GangForm
from kube.objects import mapping, marks_of
from kube.pods import ManagedPod
from policy.errors import Problem, RequestError
from policy.wording import quote

_TELLING_SIZE: Final = (GangForm.CELLGATE, GangForm.KUEUE, GangForm.HIVED)
"""Where the pod itself says how large its gang is."""
_BETWEEN: Final = ", "
_HINT: Final = (
    "another webhook changed it after Cellgate had decided; "
    'the name of its configuration must come before "cellgate" in the alphabet'
)


def describe_request(pod: ManagedPod) -> str:
    """Say what a pod asks for, as far as it says so itself."""
    parts = [f"{pod.leaf_count} leaf cells"]
    if pod.leaf_resource is not None:
        parts.append(f"{pod.device_count} {pod.leaf_resource}")
    if pod.leaf_type is not None:
        parts.append(f"leaf type {pod.leaf_type}")
    if vc := _own_vc(pod):
        parts.append(f"VC {vc}")
    return _BETWEEN.join([*parts, *_describe_gang(pod)])


def check_decided(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Return the id of the decision about a pod. Raises RequestError if it is about another one."""
    annotations = marks_of(obj, "annotations")
    decision = annotations.get(marks.DECISION_ANNOTATION)
    if not isinstance(decision, str):
        path = f"metadata.annotations[{marks.DECISION_ANNOTATION}]"
        raise RequestError.at(path, f"is missing from a pod that asks for leaf cells: {_HINT}")
    given = mapping(obj.get("spec")).get("priorityClassName") or ""
    compared = {
        "spec.priorityClassName": (annotations.get(marks.CLASS_ANNOTATION), given),
        "spec": (annotations.get(marks.REQUEST_ANNOTATION), describe_request(pod)),
    }
    problems = [
        Problem(path, f"was {_show(was, beside=now)} and is {_show(now, beside=was)}: {_HINT}")
        for path, (was, now) in compared.items()
        if was != now
    ]
    if problems:
        raise RequestError(problems)
    return decision


def _show(line: object, *, beside: object) -> str:
    """Show the parts of a line that another one has not."""
    others = str(beside).split(_BETWEEN)
    return quote(_BETWEEN.join(part for part in str(line).split(_BETWEEN) if part not in others))


def _own_vc(pod: ManagedPod) -> str | None:
    """Return the VC that a pod names; what its namespace says may change at any time."""
    return pod.hived.vc if pod.hived is not None else pod.labels.get(marks.VC_LABEL)


def _describe_gang(pod: ManagedPod) -> list[str]:
    gang = pod.gang
    is_lone = pod.hived is not None and pod.hived.gang is None
    if gang.form is GangForm.SINGLE or is_lone:
        return []
    size = gang.size or gang.min_size
    is_told = gang.form in _TELLING_SIZE and size is not None
    return [f"gang {gang.key.name} of {size}" if is_told else f"gang {gang.key.name}"]
