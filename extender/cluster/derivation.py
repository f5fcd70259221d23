"""The cells that the cluster document in force makes of the nodes that are known."""

from collections.abc import Iterable

from kube.read.nodes import KubeNode
from policy.cluster.document import BuiltCluster, ClusterDocument, LiveNode
from policy.submission import NodeName


class Derivation:
    """One document with its nodes; None is no document, and no cells."""

    def __init__(self, document: ClusterDocument | None, nodes: Iterable[KubeNode]) -> None:
        self._builder = document.builder() if document else None
        self.depends_on_nodes = document is not None and document.depends_on_nodes
        self.is_stale = False
        """Whether nodes have changed since the cells were built from them."""
        for node in nodes:
            self.observe(node)

    def observe(self, node: KubeNode) -> None:
        """A node joined, or changed what cells may depend on."""
        if self._builder is not None and self.depends_on_nodes:
            self._builder.observe(_live_node(node))
            self.is_stale = True

    def forget(self, name: NodeName) -> None:
        """A node left."""
        if self._builder is not None and self.depends_on_nodes:
            self._builder.forget(name)
            self.is_stale = True

    def build(self) -> BuiltCluster | None:
        """Build what has changed; the rest is as it was."""
        self.is_stale = False
        return self._builder.build() if self._builder is not None else None


def has_same_shape(one: KubeNode | None, other: KubeNode) -> bool:
    """Whether a node is the same, as far as cells are concerned."""
    return one is not None and (dict(one.labels), dict(one.leaf_counts)) == (
        dict(other.labels),
        dict(other.leaf_counts),
    )


def _live_node(node: KubeNode) -> LiveNode:
    return LiveNode(name=node.name, labels=node.labels, leaf_counts=node.leaf_counts)
