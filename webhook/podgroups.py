"""Native gangs: their PodGroup says how large they are, and which class all of them have.

The class of a PodGroup is set when it is created and never changes; its pods come later. So what
can be known of the decision about them is decided with the group, and pods that would get another
class then are refused, with words that say what to do.
"""

from dataclasses import replace

from kube.client import KubeClient, KubeError
from kube.podgroups import API_VERSION, PodGroup, PodGroupSink, read_pod_group
from kube.pods import GangForm, ManagedPod
from policy.errors import RequestError
from policy.policies import Policy
from policy.submission import ClassName, GangKey
from policy.wording import listing, quote

_PATH = "spec.schedulingGroup.podGroupName"


class PodGroups:
    """Finds the PodGroup of a pod: in memory, or, if it came just now, at the API server."""

    def __init__(self, sink: PodGroupSink, client: KubeClient) -> None:
        self._sink = sink
        self._client = client

    async def find(self, pod: ManagedPod) -> PodGroup | None:
        """Return a pod's PodGroup; None if it has none. Raises RequestError if it is missing."""
        if pod.gang.form is not GangForm.NATIVE:
            return None
        known = self._sink.find(pod.gang.key)
        return known or await self._ask(pod.gang.key)

    async def _ask(self, key: GangKey) -> PodGroup | None:
        path = f"/apis/{API_VERSION}/namespaces/{key.namespace}/podgroups/{key.name}"
        try:
            return read_pod_group(await self._client.request("GET", path))
        except KubeError as exc:
            if exc.is_missing:
                message = f"there is no PodGroup {quote(key.name)}; create it before its pods"
                raise RequestError.at(_PATH, message) from exc
            return None  # what Kubernetes does not tell now cannot be held against a pod


def with_group(pod: ManagedPod, group: PodGroup | None, policy: Policy) -> ManagedPod:
    """Return a pod with the size and class of its gang. Raises RequestError if it cannot fit."""
    if group is None:
        return pod
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
    gang = replace(pod.gang, size=group.min_size or 1)
    return replace(pod, gang=gang, class_name=wanted or None)


def check_fixed(fixed: ClassName | None, decided: ClassName) -> None:
    """Raise RequestError if a gang would have another class than its PodGroup."""
    if fixed is not None and decided != fixed:
        message = f"would have class {quote(decided)}, but its PodGroup has {quote(fixed)}"
        hint = "which cannot be changed: create both with the lower class"
        raise RequestError.at(_PATH, f"{message}, {hint}")
