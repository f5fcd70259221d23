"""A managed pod, translated for `extender.runs`."""

from collections.abc import Callable, Mapping
from typing import Final

from extender.cluster.cluster import Cluster
from extender.feeds.requests import GangSizeSource
from extender.runs.model import RunOwner, SeenPod
from kube.api.client import Object
from kube.lives.pod_lives import read_life
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey

_MOST_LABELS: Final = 32
_NOT_KEPT: Final = (
    "batch.kubernetes.io/", "controller-uid", "job-name", "pod-template-hash",
    "controller-revision-hash", "topology.kubernetes.io/",
)  # fmt: skip
"""Beginnings of labels that controllers and the API server write: they do not say what it runs."""

ToSeen = Callable[[ManagedPod, Object], SeenPod]


def seen_by(cluster: Cluster, sizes: GangSizeSource) -> ToSeen:
    """Return the translation, with what is known about nodes and PodGroups when it is called."""

    def translate(pod: ManagedPod, obj: Object) -> SeenPod:
        is_alone = pod.is_charged_alone or pod.is_undecided
        needed = 1 if is_alone else pod.gang.min_size or pod.gang.size or sizes.size(pod) or 1
        return SeenPod(
            uid=pod.uid,
            name=pod.name,
            gang=GangKey(pod.namespace, pod.name) if is_alone else pod.gang.key,
            owner=_owner(pod),
            life=read_life(obj),
            node=pod.node,
            leaf_count=pod.leaf_count,
            leaf_type=_leaf_type(pod, cluster) if pod.leaf_count else None,
            needed=needed,
            is_admitted=not (pod.is_gated and pod.is_uncharged),
            is_released=not pod.is_gated,
        )

    return translate


def _owner(pod: ManagedPod) -> RunOwner:
    workload = pod.workload
    return RunOwner(
        user=pod.charged_user,
        group=pod.charged_group,
        vc=pod.vc,
        requested_class=pod.requested_class or pod.class_name,
        granted_class=pod.charged_class,
        leaf_type=pod.leaf_type,
        workload=workload.reference if workload else None,
        workload_uid=workload.uid if workload else None,
        labels=bounded_labels(pod.labels),
    )


def bounded_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are recorded: the first ones by name, without controllers' own."""
    kept = sorted(name for name in labels if not name.startswith(_NOT_KEPT))
    return {name: labels[name] for name in kept[:_MOST_LABELS]}


def _leaf_type(pod: ManagedPod, cluster: Cluster) -> str | None:
    """Return the type of a pod's devices: the one asked for, else that of its chain or node."""
    if pod.leaf_type is not None or pod.node is None:
        return pod.leaf_type
    chain = pod.placement.chain if pod.placement is not None else None
    known = cluster.topology.chains.get(chain) if cluster.topology and chain else None
    if known is not None:
        return known.leaf_type
    node = cluster.nodes.get(pod.node)
    return node.leaf_type if node is not None else None
