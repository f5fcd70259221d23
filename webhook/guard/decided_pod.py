"""Check that a new pod still is the one whose class was decided. Pure.

Another webhook may run after ours and change what the pod asks for, or make a pod ask for leaf
cells in the first place. Then the line on the pod that says what it asked for
(`webhook.responses.request_line`) differs or is missing, and the pod is refused, since what it
would use is not charged.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube import marks
from kube.read.managed_pod import ManagedPod
from kube.values.objects import mapping, marks_of
from policy.errors import Problem, RequestError
from policy.wording import quote
from webhook.responses.request_line import SEPARATOR, describe_request

_HINT: Final = (
    "another webhook changed the pod after Cellgate had decided; "
    'give its configuration a name that sorts before "cellgate"'
)


def check_decided(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Return the id of the decision about a pod. Raises RequestError if it is about another one."""
    annotations = marks_of(obj, "annotations")
    decision = annotations.get(marks.DECISION_ANNOTATION)
    if not isinstance(decision, str):
        path = f"metadata.annotations[{marks.DECISION_ANNOTATION}]"
        raise RequestError.at(path, f"is missing from a pod that asks for leaf cells: {_HINT}")
    problems = [*_differences(obj, pod, annotations)]
    if pod.is_uncharged and not pod.is_gated:
        message = f"must have {marks.QUEUED_GATE} while the pod waits for quota: {_HINT}"
        problems.append(Problem("spec.schedulingGates", message))
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
            change = f"was {_show(was, other=now)} and is {_show(now, other=was)}"
            yield Problem(path, f"{change}: {_HINT}")


def _show(line: object, *, other: object) -> str:
    """Show the parts of a line that the other one lacks."""
    others = frozenset(str(other).split(SEPARATOR))
    return quote(SEPARATOR.join(part for part in str(line).split(SEPARATOR) if part not in others))
