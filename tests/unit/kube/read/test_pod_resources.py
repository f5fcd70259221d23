"""What pods request and nodes offer, as kube-scheduler counts it."""

from typing import Any

import pytest

from kube.read.pod_resources import read_capacity, read_node_pod, read_requests
from kube.read.trimming import trim_pod
from policy.pod_resources import HostPort, LabelRule, PodSelector
from tests.support.kube.nodes import a_node


def _container(cpu: str | int, memory: str = "0", **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **fields}


def _requests(**spec: Any) -> dict[str, int]:
    return dict(read_requests(spec))


def test_containers_add_up() -> None:
    asked = _requests(containers=[_container("1500m", "1Gi"), _container(2, "1M")])
    assert asked == {"cpu": 3500, "memory": 2**30 + 10**6}


def test_an_init_container_counts_if_it_needs_more_than_the_containers() -> None:
    inits = [_container("4", "1Mi"), _container("3")]
    assert _requests(containers=[_container("1", "2Mi")], initContainers=inits) == {
        "cpu": 4000,
        "memory": 2**21,
    }


def test_a_sidecar_counts_with_what_starts_after_it() -> None:
    sidecar = _container("1", restartPolicy="Always")
    assert _requests(containers=[_container("2")], initContainers=[sidecar]) == {"cpu": 3000}
    inits = [_container("4"), sidecar, _container("3500m")]
    assert _requests(containers=[_container("2")], initContainers=inits) == {"cpu": 4500}


def test_requests_of_the_pod_replace_those_of_its_containers() -> None:
    resources = {"requests": {"cpu": "8", "ephemeral-storage": "1"}}
    asked = _requests(containers=[_container("2", "1Gi")], resources=resources)
    assert asked == {"cpu": 8000, "memory": 2**30}


def test_overhead_is_added() -> None:
    assert _requests(containers=[_container("2")], overhead={"cpu": "250m"}) == {"cpu": 2250}


def test_a_limit_is_a_request_where_there_is_none() -> None:
    resources = {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    assert _requests(containers=[{"resources": resources}]) == {"cpu": 1000, "memory": 2**30}


def test_leaf_cells_are_counted_elsewhere_and_other_devices_here() -> None:
    limits = {"nvidia.com/gpu": "8", "rdma/hca": "1", "pods": "7"}
    assert _requests(containers=[{"resources": {"limits": limits}}]) == {"rdma/hca": 1}


@pytest.mark.parametrize("value", ["", "lots", "-1", None, True, [], {}, "1e999", "1.5.5"])
def test_what_is_no_quantity_counts_as_nothing(value: object) -> None:
    assert _requests(containers=[{"resources": {"requests": {"memory": value}}}]) == {}


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": [7], "overhead": 7}])
def test_any_spec_can_be_read(spec: dict[str, Any]) -> None:
    assert read_requests(spec) == ()


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "lab", "labels": {"app": "a"}}, "spec": spec}


def _resizing(condition: str, reason: str = "") -> dict[str, Any]:
    """A pod that asks for 100 CPUs and has two."""
    given = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}}
    return {
        **_pod(nodeName="n", containers=[_container("100", name="main")]),
        "status": {
            "conditions": [{"type": condition, "status": "True", "reason": reason}],
            "containerStatuses": [{"name": "main", **given}],
        },
    }


@pytest.mark.parametrize(
    ("condition", "reason", "cpu"),
    [
        ("PodResizePending", "Deferred", 100_000),
        ("PodResizePending", "Infeasible", 2_000),
        ("PodResizeInProgress", "", 100_000),
    ],
)
def test_a_resize_counts_unless_its_kubelet_calls_it_infeasible(
    condition: str, reason: str, cpu: int
) -> None:
    pod = _resizing(condition, reason)
    for read in (read_node_pod(pod), read_node_pod(trim_pod(pod))):
        assert dict(read.resources.amounts) == {"cpu": cpu}


def test_a_pod_that_shrinks_counts_as_what_it_still_has() -> None:
    pod = _resizing("PodResizeInProgress")
    pod["spec"]["containers"] = [_container("1", name="main")]
    assert dict(read_node_pod(trim_pod(pod)).resources.amounts) == {"cpu": 2_000}


@pytest.mark.parametrize("status", [7, {"conditions": [{"type": "PodResizePending"}, 7]}])
def test_any_status_can_be_read(status: object) -> None:
    pod = {**_pod(nodeName="n", containers=[_container("1")]), "status": status}
    assert dict(read_node_pod(trim_pod(pod)).resources.amounts) == {"cpu": 1_000}


def _term(selector: object = None, *, key: str = "kubernetes.io/hostname", **more: Any) -> Any:
    return {"topologyKey": key, "labelSelector": selector, **more}


def _avoiding(*terms: Any) -> Any:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return {"podAntiAffinity": required}


def test_host_ports_of_containers_and_sidecars_are_read() -> None:
    ports = [{"containerPort": 1}, {"hostPort": 80}, {"hostPort": 81, "hostIP": "10.0.0.1"}]
    sidecar = {"restartPolicy": "Always", "ports": [{"hostPort": 90, "protocol": "UDP"}]}
    init = {"ports": [{"hostPort": 91}]}
    pod = _pod(containers=[{"ports": ports}], initContainers=[sidecar, init])
    assert read_node_pod(trim_pod(pod)).resources.ports == (
        HostPort(80),
        HostPort(81, "TCP", "10.0.0.1"),
        HostPort(90, "UDP"),
    )


@pytest.mark.parametrize("node", [None, "n0"], ids=["waiting", "bound"])
def test_anti_affinity_by_host_name_is_read(node: str | None) -> None:
    selector = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
    }
    terms = [
        _term(selector),
        _term({}, namespaceSelector={}),
        _term({}, namespaces=["b", "a"]),
        _term(None),
        _term({}, key="topology.kubernetes.io/zone"),
        _term({}, namespaceSelector={"matchLabels": {"team": "x"}}),
    ]
    pod = _pod(affinity=_avoiding(*terms), **({"nodeName": node} if node else {}))
    rules = (LabelRule("app", "In", ("a",)), LabelRule("tier", "NotIn", ("x",)))
    assert read_node_pod(trim_pod(pod)).resources.keeps_off == (
        PodSelector(("lab",), rules),
        PodSelector(None, ()),
        PodSelector(("a", "b"), ()),
    )


@pytest.mark.parametrize(
    ("rule", "is_met"),
    [
        (LabelRule("app", "In", ("a",)), True),
        (LabelRule("app", "NotIn", ("a",)), False),
        (LabelRule("tier", "NotIn", ("a",)), True),
        (LabelRule("app", "Exists"), True),
        (LabelRule("app", "DoesNotExist"), False),
        (LabelRule("tier", "DoesNotExist"), True),
    ],
)
def test_a_label_rule_means_what_kubernetes_says(rule: LabelRule, *, is_met: bool) -> None:
    pod = read_node_pod(_pod())
    assert PodSelector(None, (rule,)).selects(pod) is is_met
    assert not PodSelector(("other",), (rule,)).selects(pod)


def test_equal_pods_share_one_object() -> None:
    assert read_node_pod(_pod()) is read_node_pod(_pod())


def test_a_node_offers_what_it_says_leaf_cells_excepted() -> None:
    allocatable = {"cpu": "7910m", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8"}
    node = a_node().with_status(allocatable=allocatable)
    assert read_capacity(node) == {"cpu": 7910, "memory": 2**30, "pods": 110}
    assert read_capacity({}) == {}
