"""Leaf cells are counted as Kubernetes counts effective requests."""

from typing import Any

import pytest

from kube.marks import HIVED_ENABLE_RESOURCE
from kube.read.leaf_demand import LeafDemand, read_demand
from kube.values.fields import Fields, Problems
from tests.support.kube.objects import AMD, NVIDIA
from tests.support.kube.pods import PodBuilder, a_pod


def _demand(spec: object) -> tuple[LeafDemand, list[str]]:
    problems = Problems()
    pod = Fields({"spec": spec}, key="", parent=None, problems=problems)
    demand = read_demand(pod.fields("spec"))
    return demand, [str(problem) for problem in problems.found]


def _gpus(count: object) -> dict[str, Any]:
    return {NVIDIA: count}


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        pytest.param(a_pod(), 0, id="nothing"),
        pytest.param(a_pod().with_gpus(0), 0, id="zero is nothing"),
        pytest.param(a_pod().with_gpus(8), 8, id="one container"),
        pytest.param(a_pod().with_gpus("2k"), 2_000, id="a suffix"),
        pytest.param(
            a_pod().with_gpus(2).with_container(_gpus(3)), 5, id="containers run together"
        ),
        pytest.param(
            a_pod().with_gpus(2).with_init_container(_gpus(1)), 2, id="a small init container"
        ),
        pytest.param(
            a_pod().with_gpus(2).with_init_container(_gpus(4)), 4, id="a large init container"
        ),
        pytest.param(
            a_pod().with_init_container(_gpus(4)).with_init_container(_gpus(3)),
            4,
            id="init containers run one after the other",
        ),
        pytest.param(a_pod().with_gpus(2).with_sidecar(_gpus(1)), 3, id="a sidecar adds up"),
        pytest.param(
            a_pod().with_sidecar(_gpus(1)).with_init_container(_gpus(4)),
            5,
            id="an init container runs with the sidecars before it",
        ),
        pytest.param(
            a_pod().with_init_container(_gpus(4)).with_sidecar(_gpus(1)),
            4,
            id="but not with those after it",
        ),
        pytest.param(
            a_pod()
            .with_gpus(1)
            .with_sidecar(_gpus(1))
            .with_init_container(_gpus(1))
            .with_sidecar(_gpus(2)),
            4,
            id="all sidecars run with the containers",
        ),
    ],
)
def test_effective_request(pod: PodBuilder, count: int) -> None:
    resource = NVIDIA if count else None
    assert _demand(pod["spec"]) == (LeafDemand(resource=resource, device_count=count), [])


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param(
            {"containers": [{"resources": {"requests": _gpus("4")}}]}, 4, id="requests alone"
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": _gpus("4"), "limits": _gpus("8")}}]},
            4,
            id="requests before limits",
        ),
        pytest.param(
            {
                "containers": [{"resources": {"limits": _gpus("4")}}],
                "overhead": _gpus("1"),
            },
            5,
            id="overhead",
        ),
        pytest.param(
            {
                "containers": [{"resources": {"limits": _gpus(4)}}],
                "resources": {"limits": _gpus(8)},
            },
            4,
            id="resources of the whole pod do not count",
        ),
        pytest.param({"containers": None, "initContainers": None}, 0, id="null lists"),
        pytest.param({"containers": [{"resources": None}]}, 0, id="null resources"),
        pytest.param({"containers": [{"resources": {"limits": {NVIDIA: None}}}]}, 0, id="null"),
        pytest.param(None, 0, id="no spec"),
    ],
)
def test_other_places_of_requests(spec: object, count: int) -> None:
    resource = NVIDIA if count else None
    assert _demand(spec) == (LeafDemand(resource=resource, device_count=count), [])


def test_a_pod_for_hived_needs_no_devices() -> None:
    expected = LeafDemand(is_for_hived=True)
    assert _demand(a_pod().for_hived()["spec"]) == (expected, [])
    in_init = a_pod().with_init_container({HIVED_ENABLE_RESOURCE: 1})
    assert _demand(in_init["spec"]) == (expected, [])


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        pytest.param(
            a_pod().with_gpus(1).with_gpus(2, resource=AMD)["spec"],
            [
                "spec.containers: must ask for one leaf resource only, "
                "not nvidia.com/gpu and amd.com/gpu"
            ],
            id="two leaf resources",
        ),
        pytest.param(
            a_pod().with_gpus(4_000).with_container(_gpus(97))["spec"],
            ["spec.containers: must ask for at most 4096 nvidia.com/gpu, not 4097"],
            id="too many together",
        ),
        pytest.param(
            a_pod().with_gpus("x").with_init_container(_gpus(0.5))["spec"],
            [
                "spec.containers[0].resources.limits[nvidia.com/gpu]: "
                'must be a whole number from 0 to 4096, not "x"',
                "spec.initContainers[0].resources.limits[nvidia.com/gpu]: "
                "must be a whole number from 0 to 4096, not 0.5",
            ],
            id="no numbers",
        ),
        pytest.param(
            {
                "containers": [{"resources": {"requests": _gpus(-1), "limits": _gpus(1)}}],
                "overhead": _gpus("1e30"),
            },
            [
                "spec.containers[0].resources.requests[nvidia.com/gpu]: "
                "must be a whole number from 0 to 4096, not -1",
                'spec.overhead[nvidia.com/gpu]: must be a whole number from 0 to 4096, not "1e30"',
            ],
            id="negative and huge",
        ),
        pytest.param(
            {
                "containers": {"resources": {}},
                "initContainers": [7, {"resources": "x"}, {"resources": {"limits": []}}],
                "overhead": 1,
            },
            [
                "spec.containers: must be a list, not a mapping",
                "spec.initContainers[0]: must be a mapping, not 7",
                'spec.initContainers[1].resources: must be a mapping, not "x"',
                "spec.initContainers[2].resources.limits: must be a mapping, not a list",
                "spec.overhead: must be a mapping, not 1",
            ],
            id="wrong shapes",
        ),
        pytest.param("x", ['spec: must be a mapping, not "x"'], id="no spec at all"),
    ],
)
def test_problems_are_told_with_their_paths(spec: object, problems: list[str]) -> None:
    assert _demand(spec)[1] == problems
