"""Rules for pods: defaults, validation, binding and deletion."""

from typing import Any

from simulation.objects import status
from simulation.objects.fields import Object, clone, set_condition
from simulation.objects.resources import PODS

FINISHED = ("Succeeded", "Failed")
_UPDATABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")


def with_defaults(pod: Object) -> Object:
    """Fill in the defaults that Cellgate or the scheduler read."""
    result = clone(pod)
    spec = result.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for container in all_containers(result):
        resources = container.setdefault("resources", {})
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    return result


def as_new(pod: Object, *, now: float) -> Object:
    """Set the initial status of a pod; a status from the client is ignored."""
    new_status: Object = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        set_condition(new_status, {**gated, "message": message}, now=now)
    return {**pod, "status": new_status}


def check_new(pod: Object) -> None:
    """Refuse (422) a pod that is not valid."""
    containers = pod["spec"].get("containers")
    if not containers:
        raise _invalid(pod, "spec.containers: Required value")
    for at, container in enumerate(containers):
        for field in ("name", "image"):
            if not container.get(field):
                raise _invalid(pod, f"spec.containers[{at}].{field}: Required value")
    for container in all_containers(pod):
        for name, amount in (container["resources"].get("requests") or {}).items():
            if "/" in name and not str(amount).isdigit():
                raise _invalid(
                    pod, f"resources.requests[{name}]: Invalid value: must be an integer"
                )
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        raise _invalid(pod, "spec.nodeName: Forbidden: a gated pod cannot have a node")


def check_update(old: Object, new: Object) -> None:
    """Refuse (422) changes of the spec, except images, removed gates and added tolerations."""
    gates, old_gates = _names(new, "schedulingGates"), _names(old, "schedulingGates")
    if not set(gates) <= set(old_gates):
        message = "only deletion is allowed, but found new scheduling gates"
        raise _invalid(new, f"spec.schedulingGates: Forbidden: {message}")
    tolerations = new["spec"].get("tolerations") or []
    if any(one not in tolerations for one in old["spec"].get("tolerations") or []):
        raise _invalid(new, "spec.tolerations: Forbidden: existing toleration can not be modified")
    if _frozen_part(old, was_gated=bool(old_gates)) != _frozen_part(new, was_gated=bool(old_gates)):
        raise _invalid(new, "spec: Forbidden: pod updates may not change these fields of a pod")


def _frozen_part(pod: Object, *, was_gated: bool) -> Object:
    """Return the spec without fields that may change; a gated pod has more of them."""
    free = (*_UPDATABLE, "nodeSelector", "affinity") if was_gated else _UPDATABLE
    spec = {field: value for field, value in clone(pod)["spec"].items() if field not in free}
    for container in all_containers({"spec": spec}):
        container.pop("image", None)
    return spec


def bind(pod: Object, binding: Object, *, now: float) -> Object:
    """Return the bound pod, with the annotations of the binding; 409 if it cannot be bound."""
    metadata, name = binding.get("metadata") or {}, pod["metadata"]["name"]
    if pod["metadata"].get("deletionTimestamp"):
        raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise _unbindable(name, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")
    bound = clone(pod)
    bound["spec"]["nodeName"] = binding["target"]["name"]
    for field in ("annotations", "labels"):
        if metadata.get(field):
            bound["metadata"][field] = {**(bound["metadata"].get(field) or {}), **metadata[field]}
    bound["status"].pop("nominatedNodeName", None)
    set_condition(bound["status"], {"type": "PodScheduled", "status": "True"}, now=now)
    return bound


def grace_seconds(pod: Object, options: Object) -> int:
    """Return the grace period of a deletion; 0 for a pod that is not running."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in FINISHED:
        return 0
    usual = pod["spec"].get("terminationGracePeriodSeconds", 0)
    granted = pod["metadata"].get("deletionGracePeriodSeconds", usual)
    return int(options.get("gracePeriodSeconds", granted))


def all_containers(pod: Object) -> list[Object]:
    """Return init containers, then the other containers."""
    spec = pod["spec"]
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _unbindable(name: str, why: str) -> status.ApiError:
    return status.conflict("pods/binding", name, why)


def _invalid(pod: Object, message: str) -> status.ApiError:
    return status.invalid(PODS.kind, pod["metadata"]["name"], message)


def _names(pod: Object, field: str) -> list[Any]:
    return [element["name"] for element in pod["spec"].get(field) or ()]
