"""Nodes from their feed: cells for the engine, and labels and taints for the choice of nodes."""

from collections.abc import Sequence

from extender.cluster.cluster import Cluster
from kube.api.client import Object
from kube.read.node_choice import NodeChoice, read_traits
from kube.read.nodes import read_node
from policy.submission import NodeName


class NodeSink:
    """Passes nodes on to the engine, and to the choice of nodes for pods."""

    def __init__(self, cluster: Cluster, choice: NodeChoice) -> None:
        self._cluster = cluster
        self._choice = choice

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all nodes there are; any other is gone."""
        there = {obj["metadata"]["name"] for obj in objects}
        for name in [name for name in self._cluster.nodes if name not in there]:
            self._forget(name)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A node joined or changed."""
        matters_to_pods = self._choice.upsert(read_traits(obj))
        self._cluster.observe_node(read_node(obj))
        if matters_to_pods:
            self._cluster.notify_room()  # perhaps a taint is gone, which the engine does not know

    def remove(self, obj: Object) -> None:
        """A node left."""
        self._forget(NodeName(obj["metadata"]["name"]))

    def _forget(self, name: NodeName) -> None:
        self._choice.remove(name)
        self._cluster.forget_node(name)
