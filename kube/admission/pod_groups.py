"""The PodGroup of a pod: the gang's size, and for a native one also its class.

The class of a native PodGroup is set when it is created and never changes; its pods come later. If
Cellgate stored it with a lower class than its author asked for, its gang may have up to that class
(`cellgate.io/effective-class` on the pods). Pods that would get a lower class than their PodGroup
are refused. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube import marks
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroup
from kube.values.objects import mapping, marks_of
from policy.admission.gang_decision import POD_GROUP_PATH
from policy.errors import RequestError
from policy.policy import Policy
from policy.wording import listing, quote


def by_labels(obj: Mapping[str, Any], group: PodGroup | None) -> Mapping[str, Any]:
    """Return a pod with the mark that our labels name its gang, if its PodGroup is no gang.

    The Job controller makes such a PodGroup for every Job that asks for no gang of its own.
    """
    labels = marks_of(obj, "labels")
    is_labelled = marks.GANG_LABEL in labels or marks.GANG_SIZE_LABEL in labels
    if group is None or group.min_size is not None or not is_labelled:
        return obj
    annotations = {**marks_of(obj, "annotations"), marks.GANG_BY_ANNOTATION: marks.BY_LABELS}
    return {**obj, "metadata": {**mapping(obj.get("metadata")), "annotations": annotations}}


def with_group(pod: ManagedPod, group: PodGroup | None, policy: Policy) -> ManagedPod:
    """Return a pod with the size and class of its gang. Raises RequestError if they contradict."""
    if group is None:
        if pod.gang.size is not None and not pod.is_charged_alone:
            return pod
        # A user cannot choose that a pod is charged alone.
        size = pod.gang.size or pod.gang.min_size
        return replace(pod, gang=replace(pod.gang, size=size), is_charged_alone=False)
    if pod.gang.form is GangForm.CELLGATE:  # see `by_labels`
        return _with_class(pod, group, policy)
    # Without a minimum its pods start, and are charged, one by one.
    is_alone, size = group.min_size is None, group.min_size or 1
    pod = replace(pod, gang=replace(pod.gang, size=size), is_charged_alone=is_alone)
    return _with_class(pod, group, policy) if pod.gang.form is GangForm.NATIVE else pod


def _with_class(pod: ManagedPod, group: PodGroup, policy: Policy) -> ManagedPod:
    classes, name = policy.classes, quote(group.key.name)
    if classes.entries and group.class_name is None:
        message = f"PodGroup {name} has no class; create it with one of {listing(classes.names)}"
        raise RequestError.at(POD_GROUP_PATH, message)
    wanted = classes.resolve(group.class_name, path=POD_GROUP_PATH)
    asked = group.requested_class
    named = asked if asked is not None and classes.is_lower(wanted, asked) else wanted
    own = classes.resolve(pod.class_name or named, path="spec.priorityClassName")
    if classes.is_lower(own, wanted):
        message = f"class {quote(own)} is lower than class {quote(wanted)} of PodGroup {name}"
        hint = "all pods of a PodGroup must have its class"
        raise RequestError.at("spec.priorityClassName", f"{message}: {hint}")
    return replace(pod, class_name=(own if classes.entries else wanted) or None)
