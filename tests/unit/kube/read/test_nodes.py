"""Nodes understood, and trimmed to what is understood."""

from typing import Any

import pytest

from kube.read.nodes import KubeNode, read_node
from kube.read.trimming import trim_node
from tests.support.kube.nodes import NodeBuilder, a_node

READY = {"type": "Ready", "status": "True"}


def node_with(**status: Any) -> NodeBuilder:
    node = a_node("n1").of_type("A100").with_gpus(8, usable=7)
    return node.with_status(images=[{"names": ["a"]}], **status)


def test_a_bad_device_is_there_but_cannot_be_used() -> None:
    assert read_node(node_with()) == KubeNode(
        name="n1",  # type: ignore[arg-type]  # a plain text will do
        is_healthy=True,
        labels={"kubernetes.io/hostname": "n1", "nvidia.com/gpu.product": "A100"},
        leaf_counts={"nvidia.com/gpu": 8},
        usable_count=7,
        leaf_type="A100",  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("quantity", "count"),
    [("2k", 2000), ("8000m", 8), (8, 8), ("-1", 0), ("1E", 0), ("99999999999", 0)],
)
def test_devices_are_counted_in_every_form_of_a_quantity(quantity: object, count: int) -> None:
    resources = {"nvidia.com/gpu": quantity}
    assert read_node(node_with(capacity=resources, allocatable=resources)).leaf_count == count


@pytest.mark.parametrize(
    "status",
    [
        {"capacity": None, "allocatable": None},
        {"capacity": {"nvidia.com/gpu": "many"}, "allocatable": []},
        {"capacity": {}, "allocatable": {"cpu": "8"}},
    ],
    ids=["nothing", "garbage", "no devices"],
)
def test_a_node_without_devices_is_a_node(status: dict[str, Any]) -> None:
    node = read_node(node_with(**status))
    assert (node.leaf_counts, node.leaf_count, node.usable_count) == ({}, 0, 0)


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "is_healthy"),
    [
        ([READY], False, True),
        ([READY], True, False),
        ([{"type": "Ready", "status": "Unknown"}], False, False),
        ([], False, False),
        (None, False, False),
    ],
)
def test_a_node_is_healthy_if_it_is_ready_and_not_cordoned(
    conditions: object, unschedulable: bool, is_healthy: bool
) -> None:
    node = node_with(conditions=conditions).with_spec(unschedulable=unschedulable)
    assert read_node(node).is_healthy is is_healthy


def test_what_is_trimmed_is_not_missed() -> None:
    node = node_with()
    assert read_node(trim_node(node)) == read_node(node)
    assert "images" not in trim_node(node)["status"]
