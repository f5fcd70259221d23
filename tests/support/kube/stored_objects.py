"""Objects for the tests of the simulation, and a clock that stands still until it is told."""

from collections.abc import Mapping

from simulation.objects.fields import Object, format_time
from simulation.objects.resources import CONFIG_MAPS, NODES, PODS
from simulation.objects.store import Store


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def a_configmap(store: Store, name: str, *, labels: Mapping[str, str] | None = None) -> Object:
    """Store a ConfigMap."""
    metadata = {"name": name, "namespace": "ns", "labels": dict(labels or {})}
    return store.create(CONFIG_MAPS, {"metadata": metadata})


def a_node(store: Store, name: str, *, leaf_count: int = 8, ready: bool = True) -> Object:
    """Store a node."""
    status = {
        "allocatable": {"nvidia.com/gpu": str(leaf_count)},
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return store.create(NODES, {"metadata": metadata, "spec": {}, "status": status})


def a_pod(
    store: Store,
    name: str,
    *,
    leaf_count: int = 0,
    annotations: Mapping[str, str] | None = None,
    status: Mapping[str, str] | None = None,
    **spec: object,
) -> Object:
    """Store a pod of our scheduler, as the API server would have."""
    requests = {"nvidia.com/gpu": str(leaf_count)} if leaf_count else {}
    container = {"name": "main", "resources": {"requests": requests}}
    return store.create(
        PODS,
        {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"uid-{name}",
                "creationTimestamp": format_time(1_000_000.0),
                "annotations": dict(annotations or {}),
            },
            "spec": {"schedulerName": "cellgate-scheduler", "containers": [container], **spec},
            "status": {"phase": "Pending", **(status or {})},
        },
    )
