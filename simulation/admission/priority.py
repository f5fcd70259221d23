"""The Priority admission plugin: sets the integer priority of a pod from its class.

It runs before the mutating webhooks, and again if a webhook changed the pod. A webhook that changes
the class must therefore remove the fields that the first run has set.
"""

from simulation.objects.fields import Object, clone
from simulation.objects.resources import PODS, PRIORITY_CLASSES
from simulation.objects.status import ApiError, forbidden
from simulation.objects.store import Store

_LOWER = "PreemptLowerPriority"
_COMPUTED = "priority admission controller computed {} from the given PriorityClass name"

BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admit_new(store: Store, pod: Object) -> Object:
    """Resolve the class of a new pod; refuse (403) fields that contradict it."""
    result = clone(pod)
    spec = result["spec"]
    name = spec.get("priorityClassName") or ""
    found = _resolve(store, result) if name else _default(store)
    value, policy = int(found["value"]), found.get("preemptionPolicy") or _LOWER
    if spec.get("priority") not in (None, value):
        given = f"the integer value of priority ({spec['priority']}) must not be provided"
        raise _forbidden(result, f"{given} in pod spec; {_COMPUTED.format(value)}")
    if spec.get("preemptionPolicy") not in (None, policy):
        given = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']})"
        computed = f"must not be provided in pod spec; {_COMPUTED.format(policy)}"
        raise _forbidden(result, f"{given} {computed}")
    if found["metadata"]["name"]:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec |= {"priority": value, "preemptionPolicy": policy}
    return result


def admit_update(old: Object, new: Object) -> Object:
    """Keep the resolved fields that the client left out."""
    kept = {
        field: old["spec"][field]
        for field in ("priority", "preemptionPolicy")
        if field in old["spec"]
    }
    return {**new, "spec": {**kept, **new["spec"]}}


def _resolve(store: Store, pod: Object) -> Object:
    name = pod["spec"]["priorityClassName"]
    found = store.find(PRIORITY_CLASSES, ("", name))
    if found is None:
        raise _forbidden(pod, f"no PriorityClass with name {name} was found")
    return found


def _default(store: Store) -> Object:
    """Return the lowest global default, or a class without a name and with value 0."""
    defaults = [one for one in store.list(PRIORITY_CLASSES) if one.get("globalDefault")]
    return min(
        defaults, key=lambda one: int(one["value"]), default={"metadata": {"name": ""}, "value": 0}
    )


def _forbidden(pod: Object, message: str) -> ApiError:
    return forbidden(PODS.plural, pod["metadata"].get("name", ""), message)
