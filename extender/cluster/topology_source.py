"""The cluster document in force, the nodes that are known, and the cells that follow from both."""

from collections.abc import Mapping
from types import MappingProxyType

from extender.cells.model import NodeCell
from kube.read.nodes import KubeNode
from policy.cluster.document import Builder, BuiltCluster, ClusterDocument, LiveNode
from policy.parser import DocumentKind, parse_document
from policy.submission import NodeName


class TopologySource:
    """Builds cells; without a document there are none."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, KubeNode] = {}
        self._document: ClusterDocument | None = None
        self._builder: Builder | None = None
        self.is_stale = False
        """Whether nodes have changed since the cells were built from them."""

    @property
    def nodes(self) -> Mapping[NodeName, KubeNode]:
        """The nodes that are known."""
        return MappingProxyType(self._nodes)

    @property
    def reclaims_foreign(self) -> bool:
        """Whether the document in force lets promises end foreign pods."""
        return self._document is not None and self._document.foreign == "reclaim"

    def use(self, text: str | None) -> BuiltCluster | None:
        """Build all cells from another document."""
        self._document = None if text is None else parse_cluster(text)
        self._builder = self._document.builder() if self._document else None
        for node in self._nodes.values():
            self._add_to_cells(node)
        return self.build()

    def build(self) -> BuiltCluster | None:
        """Build the cells of nodes that have changed; the others stay as they are."""
        self.is_stale = False
        return self._builder.build() if self._builder is not None else None

    def put_node(self, node: KubeNode) -> bool:
        """Note a node that joined or changed; return False if it is as it was."""
        before = self._nodes.get(node.name)
        if before == node:
            return False
        self._nodes[node.name] = node
        if before is None or _cell_facts(before) != _cell_facts(node):
            self._add_to_cells(node)
        return True

    def remove_node(self, name: NodeName) -> bool:
        """Note that a node left; return False if it was not known."""
        if self._nodes.pop(name, None) is None:
            return False
        if self._builder is not None and self._depends_on_nodes:
            self._builder.forget(name)
            self.is_stale = True
        return True

    def node_cell(self, node: KubeNode) -> NodeCell | None:
        """Return a node as the engine observes it; None for one that it must not know.

        Without a document, a node without devices does not concern the engine.
        """
        if self._document is None and not node.leaf_count:
            return None
        is_listed = self._document is not None and not self._depends_on_nodes
        return NodeCell(
            name=node.name,
            leaf_type=node.leaf_type,
            leaf_count=node.leaf_count,
            is_healthy=node.is_healthy,
            is_quarantined=node.is_quarantined,
            # Only the kubelet knows which devices are bad: the last ones stand for them. Devices
            # that a document lists have numbers of their own.
            bad_leaf_cells=() if is_listed else tuple(range(node.usable_count, node.leaf_count)),
        )

    @property
    def _depends_on_nodes(self) -> bool:
        return self._document is not None and self._document.depends_on_nodes

    def _add_to_cells(self, node: KubeNode) -> None:
        if self._builder is not None and self._depends_on_nodes:
            live = LiveNode(name=node.name, labels=node.labels, leaf_counts=node.leaf_counts)
            self._builder.observe(live)
            self.is_stale = True


def parse_cluster(text: str) -> ClusterDocument:
    """Parse a cluster document. Raises SpecError with all problems."""
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return document


def _cell_facts(node: KubeNode) -> tuple[dict[str, str], dict[str, int]]:
    """Return what cells depend on."""
    return dict(node.labels), dict(node.leaf_counts)
