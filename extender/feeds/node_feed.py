"""Nodes from their feed: cells for the engine; labels, taints and room for the choice of nodes."""

from collections.abc import Sequence

from extender.cluster.cluster import Cluster
from extender.room.fitting_nodes import FittingNodes
from kube.api.client import Object
from kube.read.node_choice import read_traits
from kube.read.nodes import read_node
from kube.read.pod_resources import read_capacity
from policy.submission import NodeName


class NodeSink:
    """Passes nodes on to the engine, and to the choice of nodes for pods."""

    def __init__(self, cluster: Cluster, fitting: FittingNodes) -> None:
        self._cluster = cluster
        self._fitting = fitting

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all nodes there are; any other is gone."""
        there = {obj["metadata"]["name"] for obj in objects}
        for name in [name for name in self._cluster.nodes if name not in there]:
            self._forget(name)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A node joined or changed."""
        traits = read_traits(obj)
        matters_to_pods = self._fitting.upsert(traits.name, traits, read_capacity(obj))
        self._cluster.observe_node(read_node(obj))
        if matters_to_pods:
            self._cluster.note_node_change(traits.name)

    def remove(self, obj: Object) -> None:
        """A node left."""
        self._forget(NodeName(obj["metadata"]["name"]))

    def _forget(self, name: NodeName) -> None:
        self._fitting.remove(name)
        self._cluster.forget_node(name)
