"""The pod of a simulation, as the API server would pass it to the webhook and store it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.follow.priority_classes import PriorityClassSink
from kube.values.fields import Fields, Problems
from kube.values.objects import mapping, marks_of
from kube.values.texts import LABEL_VALUE
from policy.errors import RequestError
from policy.submission import ClassName
from policy.wording import describe, quote

_NAME: Final = "simulated"
_GIVEN_LATER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "resourceVersion")
_FOUND_OUT: Final = (marks.WORKLOAD_ANNOTATION, marks.GANG_BY_ANNOTATION)
"""What the webhook finds out by itself, whatever the author wrote."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_COMPUTED: Final = ("priority", "preemptionPolicy")


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """The user that would create the pod."""

    username: str
    groups: tuple[str, ...]


def as_submitted(pod: Mapping[str, Any], priorities: PriorityClassSink) -> dict[str, Any]:
    """Return a pod with a name and its class, without what is known only once it exists.

    Raises RequestError for a pod that names its node.
    """
    metadata = mapping(pod.get("metadata"))
    name = metadata.get("name") or f"{metadata.get('generateName') or ''}{_NAME}"
    kept = {key: value for key, value in metadata.items() if key not in _GIVEN_LATER}
    annotations = {
        key: value for key, value in marks_of(pod, "annotations").items() if key not in _FOUND_OUT
    }
    spec = {**mapping(pod.get("spec"))}
    if not spec.get("priorityClassName") and priorities.default is not None:
        spec["priorityClassName"] = priorities.default
    if spec.get("nodeName"):
        hint = "no scheduler looks at a pod that names its node, so there is nothing to simulate"
        raise RequestError.at("pod.spec.nodeName", hint)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "name": name, "annotations": annotations},
        "spec": spec,
    }


def as_stored(
    pod: Mapping[str, Any], class_name: ClassName, priorities: PriorityClassSink
) -> dict[str, Any]:
    """Return a pod with what Kubernetes computes from its class.

    Raises RequestError as the API server does, if there is no such PriorityClass.
    """
    spec = {key: value for key, value in pod["spec"].items() if key not in _COMPUTED}
    if class_name and priorities.is_known:
        if class_name not in priorities.values:
            message = f"no PriorityClass with name {quote(class_name)} was found"
            raise RequestError.at("spec.priorityClassName", message)
        spec["priority"] = priorities.values[class_name]
        if class_name in priorities.never_preempting:
            spec["preemptionPolicy"] = "Never"
    return {**pod, "metadata": {**pod["metadata"], "uid": _NAME}, "spec": spec}


def check_node_rules(pod: Mapping[str, Any]) -> None:
    """Raise RequestError if what restricts the nodes of a pod has not the form of Kubernetes.

    The API server checks that of pods that exist, and those who read it rely on that.
    """
    problems = Problems()
    spec = Fields(pod.get("spec"), key="spec", parent=None, problems=problems)
    spec.texts("nodeSelector")
    for toleration in spec.items("tolerations"):
        for key in ("key", "operator", "value", "effect"):
            toleration.text(key)
    affinity = spec.fields("affinity").fields("nodeAffinity")
    for term in affinity.fields(_REQUIRED).items("nodeSelectorTerms"):
        for one in (*term.items("matchExpressions"), *term.items("matchFields")):
            _check_requirement(one)
    problems.check()


def _check_requirement(one: Fields) -> None:
    for key in ("key", "operator"):
        if not one.text(key):
            one.note(key, "is required")
    for place, value in enumerate(one.entries("values") or ()):
        wrong = LABEL_VALUE.problem(value) if isinstance(value, str) and value else None
        if wrong or not isinstance(value, str):
            one.note(f"values[{place}]", wrong or f"must be a string, not {describe(value)}")
