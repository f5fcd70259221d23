"""Workloads whose pods are made from a template."""

from typing import Any

from kube.read.workloads import Workload
from tests.support.kube.objects import ObjectBuilder, uid_of
from tests.support.kube.pods import PodBuilder, a_new_pod

_VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def a_template(pod: PodBuilder | None = None) -> dict[str, Any]:
    """The template of a pod; by default of one that asks for a device."""
    pod = a_new_pod("unused").with_gpus(1) if pod is None else pod
    metadata = {
        key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]
    }
    return {"metadata": metadata, "spec": pod["spec"]}


def a_workload(
    kind: str = "Job",
    name: str = "train",
    *,
    template: dict[str, Any] | None = None,
    namespace: str | None = "lab",
    **spec: Any,
) -> ObjectBuilder:
    """A workload of a kind that Kubernetes has; `spec` is beside the template."""
    inner = {"template": a_template() if template is None else template, **spec}
    return ObjectBuilder(
        apiVersion=_VERSIONS.get(kind, "apps/v1"),
        kind=kind,
        metadata={"name": name, **({"namespace": namespace} if namespace else {})},
        spec={"jobTemplate": {"spec": inner}} if kind == "CronJob" else inner,
    )


def workload_mark(name: str, *, kind: str = "Job", group: str = "batch") -> str:
    """The mark of a workload on its pods."""
    return Workload(group=group, kind=kind, name=name, uid=uid_of(name)).mark


def a_stored_owner(name: str, *, kind: str = "Job", uid_name: str = "") -> ObjectBuilder:
    """The metadata of a controller, as an API server returns them."""
    metadata = {"name": name, "namespace": "lab", "uid": uid_of(uid_name or name)}
    return ObjectBuilder(kind=kind, metadata=metadata)
