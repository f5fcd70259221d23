"""What pods request beside leaf cells, and what nodes offer, as kube-scheduler counts it.

A pod counts as the sum of its containers and sidecars, or as the largest init container with the
sidecars that start before it, whichever is more, and its overhead. Requests of the pod itself
(`spec.resources`) replace those of its containers. While a pod is resized in place, the larger one
of what it requests and what its kubelet has given it counts; a resize that the kubelet calls
infeasible does not count. A value that cannot be read counts as zero: the API server has validated
pods and nodes, and kube-scheduler checks them again.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from kube import marks
from kube.read.label_selectors import read_selector
from kube.values.objects import items, mapping
from kube.values.quantities import parse_amount
from policy.pod_resources import (
    CPU,
    PODS,
    Amounts,
    HostPort,
    NodePod,
    PodResources,
    PodSelector,
)

_NOT_COUNTED: Final = frozenset((*marks.DEFAULT_LEAF_RESOURCES, marks.HIVED_ENABLE_RESOURCE, PODS))
"""Leaf cells are counted by the engine; a pod is one pod, whatever it says."""
_OF_THE_POD: Final = ("cpu", "memory", "hugepages-")
"""The resources that a pod may request as a whole."""
_SIDECAR: Final = "Always"
_HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_RESIZE: Final = "PodResize"
"""Conditions whose names begin so say that a resize of a pod is not done."""
_INFEASIBLE: Final = ("PodResizePending", "Infeasible")

Sums = dict[str, int]


def read_node_pod(pod: Mapping[str, Any]) -> NodePod:
    """Read a pod as other pods on its node see it."""
    metadata, spec = mapping(pod.get("metadata")), _resized(pod)
    namespace = str(metadata.get("namespace") or marks.DEFAULT_NAMESPACE)
    return _shared(
        NodePod(
            resources=PodResources(
                amounts=read_requests(spec),
                ports=tuple(_read_ports(spec)),
                keeps_off=tuple(_read_keeps_off(spec, namespace)),
            ),
            namespace=namespace,
            labels=tuple(sorted(_texts(metadata.get("labels")))),
        )
    )


def open_resizes(status: object) -> list[Mapping[str, Any]]:
    """Return the conditions that say that a resize of a pod is not done."""
    conditions = items(mapping(status).get("conditions"))
    return [one for one in conditions if str(one.get("type")).startswith(_RESIZE)]


def _resized(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of a pod, with what counts of its containers during a resize."""
    spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
    resizes = open_resizes(status)
    if not resizes:
        return spec
    is_refused = any((one.get("type"), one.get("reason")) == _INFEASIBLE for one in resizes)
    given = {
        str(one.get("name")): one
        for key in ("containerStatuses", "initContainerStatuses")
        for one in items(status.get(key))
    }
    counted = {
        key: [_settled(one, given, is_refused=is_refused) for one in items(spec.get(key))]
        for key in ("containers", "initContainers")
    }
    return {**spec, **counted}


def _settled(
    container: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], *, is_refused: bool
) -> Mapping[str, Any]:
    status = given.get(str(container.get("name")))
    if status is None:
        return container
    has = mapping(mapping(status.get("resources")).get("requests"))
    sets = [has, mapping(status.get("allocatedResources"))]
    if not any(sets):
        return container
    if not is_refused:
        resources = mapping(container.get("resources"))
        sets.append({**mapping(resources.get("limits")), **mapping(resources.get("requests"))})
    return {**container, "resources": {"requests": _largest(sets)}}


def _largest(sets: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the largest quantity of each resource."""
    found: dict[str, Any] = {}
    for name, value in (pair for one in sets for pair in one.items()):
        amount = parse_amount(value, is_cpu=name == CPU)
        if name not in found or amount > parse_amount(found[name], is_cpu=name == CPU):
            found[name] = value
    return found


def read_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod requests of each resource, leaf cells excepted."""
    total: Sums = {}
    sidecars: Sums = {}
    peak: Sums = {}
    for container in items(spec.get("containers")):
        _add(total, _asked(container))
    for container in items(spec.get("initContainers")):
        asked = _asked(container)
        if container.get("restartPolicy") == _SIDECAR:
            _add(sidecars, asked)
            _raise(peak, sidecars)
        else:
            _raise(peak, _sum(sidecars, asked))
    _add(total, sidecars)
    _raise(total, peak)
    total |= _asked_by_pod(spec)
    _add(total, _amounts(mapping(spec.get("overhead"))))
    return tuple(sorted((name, amount) for name, amount in total.items() if amount > 0))


def read_capacity(node: Mapping[str, Any]) -> dict[str, int]:
    """Return what a node has for pods, of each resource that it names, leaf cells excepted."""
    allocatable = mapping(mapping(node.get("status")).get("allocatable"))
    capacity = _amounts(allocatable)
    if PODS in allocatable:
        capacity[PODS] = parse_amount(allocatable[PODS], is_cpu=False)
    return capacity


@lru_cache(maxsize=8192)
def _shared(pod: NodePod) -> NodePod:
    """Return the one object for equal pods: a large cluster has many, and few differ."""
    return pod


def _asked(container: Mapping[str, Any]) -> Sums:
    resources = mapping(container.get("resources"))
    return _amounts({**mapping(resources.get("limits")), **mapping(resources.get("requests"))})


def _asked_by_pod(spec: Mapping[str, Any]) -> Sums:
    requests = mapping(mapping(spec.get("resources")).get("requests"))
    return {
        name: amount for name, amount in _amounts(requests).items() if name.startswith(_OF_THE_POD)
    }


def _amounts(quantities: Mapping[str, Any]) -> Sums:
    return {
        name: parse_amount(value, is_cpu=name == CPU)
        for name, value in quantities.items()
        if name not in _NOT_COUNTED
    }


def _add(sums: Sums, more: Sums) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def _sum(one: Sums, other: Sums) -> Sums:
    found = dict(one)
    _add(found, other)
    return found


def _raise(sums: Sums, least: Sums) -> None:
    for name, amount in least.items():
        sums[name] = max(sums.get(name, 0), amount)


def _read_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    inits = items(spec.get("initContainers"))
    sidecars = [one for one in inits if one.get("restartPolicy") == _SIDECAR]
    for container in (*items(spec.get("containers")), *sidecars):
        for port in items(container.get("ports")):
            number = port.get("hostPort")
            if isinstance(number, int) and number > 0:
                protocol = str(port.get("protocol") or "TCP")
                address = str(port.get("hostIP") or "")
                yield HostPort(number, protocol, address) if address else HostPort(number, protocol)


def _read_keeps_off(spec: Mapping[str, Any], namespace: str) -> Iterator[PodSelector]:
    """Read the terms that can be decided from the pods of one node alone."""
    affinity = mapping(mapping(spec.get("affinity")).get("podAntiAffinity"))
    for term in items(affinity.get(_REQUIRED)):
        is_by_labels = bool(mapping(term.get("namespaceSelector")))
        if term.get("topologyKey") != _HOSTNAME or is_by_labels:
            continue
        selector = read_selector(term.get("labelSelector"))
        if selector.requirements is None:
            continue  # it selects no pod
        named = term.get("namespaces")
        names = [str(one) for one in named] if isinstance(named, list) else []
        is_all = term.get("namespaceSelector") is not None
        where = None if is_all else tuple(sorted(names or [namespace]))
        yield PodSelector(where, selector.requirements)


def _texts(labels: object) -> Iterator[tuple[str, str]]:
    return ((str(key), str(value)) for key, value in mapping(labels).items())
