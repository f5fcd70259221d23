"""Nodes for tests, said in one line. A test states only what matters to it.

a_node("node-00").of_type("A100").in_rack("r1").cordoned()
"""

from typing import Any, Self

from kube.read.nodes import KubeNode, read_node
from tests.support.kube.objects import NVIDIA, ObjectBuilder

RACK_LABEL = "topology.kubernetes.io/rack"
LEAF_TYPE_LABEL = "nvidia.com/gpu.product"


def a_node(name: str = "node-00", *, gpus: int = 8) -> "NodeBuilder":
    """Start with a ready node, all of whose devices are allocatable."""
    node = NodeBuilder(
        apiVersion="v1",
        kind="Node",
        metadata={"name": name, "labels": {"kubernetes.io/hostname": name}},
        spec={},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )
    return node.with_gpus(gpus)


class NodeBuilder(ObjectBuilder):
    """A node, as the API server's JSON."""

    def with_gpus(self, count: int, *, usable: int | None = None) -> Self:
        """Give it devices; those that are not usable are bad."""
        allocatable = count if usable is None else usable
        return self.with_status(
            capacity={NVIDIA: str(count)}, allocatable={NVIDIA: str(allocatable)}
        )

    def of_type(self, leaf_type: str) -> Self:
        """Say of which type its devices are."""
        return self.labelled(LEAF_TYPE_LABEL, leaf_type)

    def in_rack(self, rack: str) -> Self:
        """Put it into a rack."""
        return self.labelled(RACK_LABEL, rack)

    def unready(self) -> Self:
        """Let its kubelet be away."""
        return self.with_status(conditions=[{"type": "Ready", "status": "False"}])

    def cordoned(self) -> Self:
        """Let it take no new pods."""
        return self.with_spec(unschedulable=True)

    def with_status(self, **fields: Any) -> Self:
        """Set fields of its status."""
        return self._changed("status", **fields)

    def read(self) -> KubeNode:
        """The node as our services read it."""
        return read_node(self)
