"""The cluster document in force, the nodes that are known, and the cells that follow from both."""

from collections.abc import Mapping
from types import MappingProxyType

from extender.cells.model import NodeCell
from extender.cells.views.listings import Stepwise
from kube.read.nodes import KubeNode
from policy.cluster.document import BuiltCluster, ClusterDocument, LiveNode
from policy.parser import DocumentKind, parse_document
from policy.submission import NodeName


class _Draft:
    """A document, or none, and the cells that follow from it and from nodes."""

    def __init__(self, document: ClusterDocument | None) -> None:
        self.document = document
        self._builder = document.builder() if document else None
        self.depends_on_nodes = document is not None and document.depends_on_nodes
        self.is_stale = False

    def put(self, node: KubeNode) -> None:
        if self._builder is not None and self.depends_on_nodes:
            live = LiveNode(name=node.name, labels=node.labels, leaf_counts=node.leaf_counts)
            self._builder.observe(live)
            self.is_stale = True

    def drop(self, name: NodeName) -> None:
        if self._builder is not None and self.depends_on_nodes:
            self._builder.forget(name)
            self.is_stale = True

    def build_stepwise(self) -> Stepwise[BuiltCluster | None]:
        self.is_stale = False
        return (yield from self._builder.build_stepwise()) if self._builder is not None else None


class TopologySource:
    """Builds cells; without a document there are none."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, KubeNode] = {}
        self._present = _Draft(None)
        self._next: _Draft | None = None
        """The document that is to be in force soon."""

    @property
    def nodes(self) -> Mapping[NodeName, KubeNode]:
        """The nodes that are known."""
        return MappingProxyType(self._nodes)

    @property
    def is_stale(self) -> bool:
        """Whether nodes have changed since the cells were built from them."""
        return self._present.is_stale

    def prepare_stepwise(self, document: ClusterDocument | None) -> Stepwise[BuiltCluster | None]:
        """Build all cells from another document, which `commit` puts in force."""
        self._next = draft = _Draft(document)
        for name in list(self._nodes) if draft.depends_on_nodes else ():
            if name in self._nodes:
                draft.put(self._nodes[name])
            yield
        return (yield from draft.build_stepwise())

    def commit(self) -> None:
        """Put the document in force from which cells were prepared."""
        assert self._next is not None
        self._present, self._next = self._next, None

    def build_stepwise(self) -> Stepwise[BuiltCluster | None]:
        """Build the cells of nodes that have changed; the others stay as they are."""
        return self._present.build_stepwise()

    def put_node(self, node: KubeNode) -> bool:
        """Note a node that joined or changed; return False if it is as it was."""
        before = self._nodes.get(node.name)
        if before == node:
            return False
        self._nodes[node.name] = node
        if before is None or _cell_facts(before) != _cell_facts(node):
            for draft in self._drafts():
                draft.put(node)
        return True

    def remove_node(self, name: NodeName) -> bool:
        """Note that a node left; return False if it was not known."""
        if self._nodes.pop(name, None) is None:
            return False
        for draft in self._drafts():
            draft.drop(name)
        return True

    def _drafts(self) -> list[_Draft]:
        return [self._present] if self._next is None else [self._present, self._next]

    def node_cell(self, node: KubeNode) -> NodeCell | None:
        """Return a node as the engine observes it; None for one that it must not know.

        Without a document, a node without devices does not concern the engine.
        """
        document = self._present.document
        if document is None and not node.leaf_count:
            return None
        is_listed = document is not None and not self._present.depends_on_nodes
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


def parse_cluster(text: str) -> ClusterDocument:
    """Parse a cluster document. Raises SpecError with all problems."""
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return document


def _cell_facts(node: KubeNode) -> tuple[dict[str, str], dict[str, int]]:
    """Return what cells depend on."""
    return dict(node.labels), dict(node.leaf_counts)
