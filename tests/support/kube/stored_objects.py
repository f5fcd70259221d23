"""Objects in the store of the simulated API server."""

from collections.abc import Mapping

from simulation.objects.fields import Object, format_time
from simulation.objects.resources import CONFIG_MAPS, NODES, PODS
from simulation.objects.store import Store
from tests.support.kube.nodes import NodeBuilder
from tests.support.kube.pods import a_pod


def store_config_map(store: Store, name: str, *, labels: Mapping[str, str] | None = None) -> Object:
    """Store a ConfigMap."""
    metadata = {"name": name, "namespace": "ns", "labels": dict(labels or {})}
    return store.create(CONFIG_MAPS, {"metadata": metadata})


def store_node(store: Store, node: NodeBuilder) -> Object:
    """Store a node."""
    return store.create(NODES, node)


def store_pod(
    store: Store,
    name: str,
    *,
    leaf_count: int = 0,
    annotations: Mapping[str, str] | None = None,
    status: Mapping[str, str] | None = None,
    **spec: object,
) -> Object:
    """Store a pod of our scheduler, as the API server would have."""
    pod = a_pod(name, namespace="ns").with_spec(**spec).with_status(**(status or {}))
    pod = pod.created_at(format_time(1_000_000.0))
    for key, value in (annotations or {}).items():
        pod = pod.annotated(key, value)
    pod = pod.with_gpus(leaf_count) if leaf_count else pod
    return store.create(PODS, pod.defaulted())
