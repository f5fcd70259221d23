"""Cluster documents as they were written: a replay has to read the very same text."""

from dataclasses import dataclass

from policy.cluster.document import ClusterDocument
from policy.documents.documents import Kind, parse_document


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterText:
    """A cluster document as it was written, and what it means."""

    text: str
    document: ClusterDocument


def read_cluster_text(text: str) -> ClusterText:
    """Understand a cluster document. Raises SpecError with all problems."""
    document = parse_document(text, kind=Kind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return ClusterText(text=text, document=document)
