"""Gangs of which only a PodGroup says how large they are, and of a native one also the class.

The class of a native PodGroup is set when it is created and never changes; its pods come later. So
what can be known of the decision about them is decided with the group, and pods that would get
another class then are refused, with words that say what to do.
"""

from dataclasses import replace

from kube.api.client import KubeError
from kube.follow.pod_groups import PodGroupFollower
from kube.read.pod_groups import PodGroup
from kube.read.pods import GangForm, ManagedPod
from policy.errors import RequestError
from policy.policy import Policy
from policy.submission import ClassName, GangKey
from policy.wording import listing, quote
from webhook.admission.time_budget import KUBE_SECONDS, within_budget

_PATH = "spec.schedulingGroup.podGroupName"


class PodGroups:
    """Finds the PodGroup of a pod: in memory, or, if it came just now, at the API server."""

    def __init__(self, followed: PodGroupFollower) -> None:
        self._followed = followed

    async def find(self, pod: ManagedPod) -> PodGroup | None:
        """Return a pod's PodGroup; None if it has none. Raises RequestError if it must have one."""
        form, key = pod.gang.form, pod.gang.key
        if form not in self._followed.sinks or pod.gang.size is not None:
            return None
        return self._followed.find(pod) or await self._ask(form, key)

    async def _ask(self, form: GangForm, key: GangKey) -> PodGroup | None:
        try:
            async with within_budget(KUBE_SECONDS):
                return await self._followed.read(form, key)
        except TimeoutError:
            return None  # what Kubernetes does not tell now cannot be held against a pod
        except KubeError as exc:
            if exc.is_missing and form is GangForm.NATIVE:
                message = f"there is no PodGroup {quote(key.name)}; create it before its pods"
                raise RequestError.at(_PATH, message) from exc
            return None


def with_group(pod: ManagedPod, group: PodGroup | None, policy: Policy) -> ManagedPod:
    """Return a pod with the size and class of its gang. Raises RequestError if it cannot fit."""
    if group is None:
        if pod.gang.size is None or pod.is_charged_alone:  # which is not for its author to say
            size = pod.gang.size or pod.gang.min_size
            return replace(pod, gang=replace(pod.gang, size=size), is_charged_alone=False)
        return pod
    # Without a minimum its pods start, and are charged, one by one.
    is_alone, size = group.min_size is None, group.min_size or 1
    pod = replace(pod, gang=replace(pod.gang, size=size), is_charged_alone=is_alone)
    return _with_class(pod, group, policy) if pod.gang.form is GangForm.NATIVE else pod


def _with_class(pod: ManagedPod, group: PodGroup, policy: Policy) -> ManagedPod:
    classes, name = policy.classes, quote(group.key.name)
    if classes.entries and group.class_name is None:
        message = f"PodGroup {name} has no class; create it with one of {listing(classes.names)}"
        raise RequestError.at(_PATH, message)
    wanted = classes.resolve(group.class_name, path=_PATH)
    own = classes.resolve(pod.class_name or wanted, path="spec.priorityClassName")
    if classes.is_lower(own, wanted):
        message = f"class {quote(own)} is lower than class {quote(wanted)} of PodGroup {name}"
        told = f"{message}: all pods of a PodGroup must have its class"
        raise RequestError.at("spec.priorityClassName", told)
    return replace(pod, class_name=(own if classes.entries else wanted) or None)


def check_fixed(fixed: ClassName | None, decided: ClassName) -> None:
    """Raise RequestError if a gang would have another class than its PodGroup."""
    if fixed is not None and decided != fixed:
        message = f"would have class {quote(decided)}, but its PodGroup has {quote(fixed)}"
        hint = "which cannot be changed: create both with the lower class"
        raise RequestError.at(_PATH, f"{message}, {hint}")
