"""Cluster documents with their text: the log stores the text, so that a replay reads the same."""

from dataclasses import dataclass

from policy.cluster.document import ClusterDocument
from policy.parser import DocumentKind, parse_document


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterText:
    """A cluster document and the text that it was parsed from."""

    text: str
    document: ClusterDocument


def read_cluster_text(text: str) -> ClusterText:
    """Parse a cluster document. Raises SpecError with all problems."""
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return ClusterText(text=text, document=document)
