"""Pods trimmed to what is read of them."""

from typing import Any

import pytest

from kube import marks
from kube.hived.spec import HivedSpec
from kube.read.pods import read_pod
from kube.read.trimming import trim_pod
from policy.placement import Placement
from policy.submission import NodeName, VcName
from tests.support.kube.pods import PodBuilder, a_pod

PODS = [
    a_pod(),
    a_pod().with_gpus(8).in_gang("g", size=2).in_vc("lab").of_class("prod", priority=7),
    a_pod().with_gpus(1).with_init_container({"nvidia.com/gpu": "2"}).gated(),
    a_pod().with_gpus(1).with_sidecar({"nvidia.com/gpu": "2"}).submitted_by("alice", "x"),
    a_pod().for_hived().with_hived_spec(HivedSpec(vc=VcName("a"), leaf_count=3)),
    a_pod().with_gpus(1).placed(Placement(node=NodeName("n"), leaf_cells=(1,))).bound_to("n"),
    a_pod().with_gpus(1).annotated(marks.VOLCANO_ANNOTATION, "v").being_deleted(),
    a_pod().with_gpus(1).in_native_gang("native").charged_to("vision"),
]


@pytest.mark.parametrize("pod", PODS)
def test_a_trimmed_pod_reads_the_same(pod: PodBuilder) -> None:
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "x" * 9000
    pod["spec"]["containers"][0]["env"] = [{"name": "A", "value": "B"}]
    pod["status"]["containerStatuses"] = [{"name": "main"}]
    trimmed = trim_pod(pod)

    assert read_pod(trimmed) == read_pod(pod)
    assert len(str(trimmed)) < 2000


def test_a_trimmed_pod_keeps_what_the_planner_reads_of_pods_that_are_not_bound() -> None:
    pod = a_pod().with_gpus(1).gated()
    pod["spec"]["nodeSelector"] = {"zone": "a"}
    pod["status"]["nominatedNodeName"] = "n"
    read = read_pod(trim_pod(pod))

    assert read is not None
    assert read.nominated_node == "n"
    assert read.node_wish.selector == (("zone", "a"),)


def test_a_trimmed_pod_keeps_when_it_was_bound() -> None:
    pod = a_pod().with_gpus(1).bound_to("n")
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-18T07:00:00Z"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}, bound]
    read = read_pod(trim_pod(pod))

    assert read is not None
    assert read.bound_at == 1_794_985_200


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"name": "x"}},
        {"metadata": {"name": "x", "annotations": 7}, "spec": 7, "status": None},
        {"metadata": {"name": "x"}, "spec": {"containers": {"a": 1}, "initContainers": [7]}},
    ],
)
def test_garbage_is_trimmed_too(pod: dict[str, Any]) -> None:
    assert trim_pod(pod)["metadata"]["name"] == "x"
