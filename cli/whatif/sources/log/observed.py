"""What the cluster was: its nodes and the documents in force, from rows of the decision log."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from extender.cluster import rows
from extender.cluster.journal import SERVICE as EXTENDER
from kube.read.nodes import KubeNode
from policy.cluster.document import LiveNode
from policy.errors import SettingsError
from policy.parser import DocumentKind
from policy.store import PolicyText
from policy.submission import NodeName
from state.log.records import DecisionRecord, LoggedDocument, RowKind

_FROM: Final = "the log"


class Observed:
    """Follows the nodes, and which documents were in force last."""

    def __init__(self) -> None:
        self.nodes: dict[NodeName, KubeNode] = {}
        self.policies: dict[str, None] = {}
        """The hashes of all policies that admission decisions name, in their order."""
        self.cluster: str | None = None
        """The hash of the Cluster document that the extender used last."""
        self.documents: dict[str, LoggedDocument] = {}

    def note(self, record: DecisionRecord) -> None:
        """Take in a row of either service."""
        self.documents |= {one.hash: one for one in record.documents}
        if record.kind == RowKind.ADMISSION and isinstance(record.inputs.get("policy"), str):
            self.policies.pop(record.inputs["policy"], None)
            self.policies[record.inputs["policy"]] = None
        if record.service == EXTENDER and record.kind == RowKind.NODE:
            self._note_node(record)
        elif record.service == EXTENDER and record.kind == RowKind.DOCUMENT:
            self._note_document(record)

    def _note_node(self, record: DecisionRecord) -> None:
        name = NodeName(record.subject)
        if "node" in record.inputs:
            self.nodes[name] = rows.decode_node(name, record.inputs["node"])
        else:
            self.nodes.pop(name, None)

    def _note_document(self, record: DecisionRecord) -> None:
        if record.outcome == "begun":  # a new leader is told of all nodes again
            self.nodes.clear()
            self.cluster = None
        elif record.outcome in ("removing", "removed"):
            self.cluster = None
        elif "document" in record.inputs:
            self.cluster = record.inputs["document"]

    def use(self, nodes: Iterable[LiveNode]) -> None:
        """Take in all nodes that are there, where rows do not tell of all of them."""
        here = {node.name: node for node in nodes}
        self.nodes = {
            name: self.nodes.get(name)
            or KubeNode(
                name=name, is_healthy=True, labels=node.labels, leaf_counts=node.leaf_counts
            )
            for name, node in here.items()
        }

    @property
    def wanted_documents(self) -> list[str]:
        """The hashes of the documents in force last, for a reader that looks them up."""
        last = [*self.policies][-1:]
        return [one for one in (*last, self.cluster) if one is not None]

    def texts(self) -> list[PolicyText]:
        """Return the documents in force last, as far as the log has them."""
        found: dict[DocumentKind, list[PolicyText]] = {}
        for policy in [*self.policies][-1:]:
            for text in _texts_of(self.documents.get(policy)):
                found.setdefault(text.kind, []).append(text)
        cluster = self.documents.get(self.cluster or "")
        if cluster is not None:
            source = f"{_FROM}: {DocumentKind.CLUSTER}"
            text = PolicyText(kind=DocumentKind.CLUSTER, source=source, text=cluster.content)
            found[DocumentKind.CLUSTER] = [text]
        return [text for some in found.values() for text in some]


def _texts_of(document: LoggedDocument | None) -> Iterator[PolicyText]:
    """Yield the documents of a policy, each as a text of its own: JSON is YAML, too."""
    if document is None:
        return
    try:
        content: dict[str, Any] = json.loads(document.content)
        kinds = {DocumentKind(name): told for name, told in content.items()}
    except (ValueError, AttributeError) as exc:
        raise SettingsError(f"this release cannot read the policy in the log: {exc}") from exc
    for kind, told in kinds.items():
        for place, one in enumerate(told if kind.may_be_many else [told], 1):
            source = f"{_FROM}: {kind}" + (f" {place}" if kind.may_be_many else "")
            yield PolicyText(kind=kind, source=source, text=json.dumps(one, ensure_ascii=False))
