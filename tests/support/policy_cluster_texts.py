"""Cluster documents in short: the parts that tests have in common."""

import pytest

from policy.cluster.document import ClusterDocument
from policy.documents.parser import DocumentKind, parse_document
from policy.errors import SpecError
from policy.topology import Chain, ChainName, PhysicalCell, Topology

TYPES = """
  cellTypes:
    PAIR: {childCellType: G, childCellNumber: 2}
    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 2}
"""
POOL = "  - {cellType: POOL, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}"


def hived(cells: str = POOL, *, types: str = TYPES, vcs: str = "{}") -> str:
    """Write HiveD's YAML from the parts that matter."""
    return f"physicalCluster:{types}  physicalCells:\n{cells}\nvirtualClusters: {vcs}\n"


def cluster_of(text: str) -> ClusterDocument:
    """Read a document that is good."""
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return document


def topology_of(text: str) -> Topology:
    return cluster_of(text).build().topology


def chain_of(text: str, name: str) -> Chain:
    return topology_of(text).chains[ChainName(name)]


def warnings_of(text: str) -> list[str]:
    return [str(warning) for warning in cluster_of(text).warnings]


def problems_of(text: str) -> list[str]:
    """Read a document that is bad."""
    with pytest.raises(SpecError) as raised:
        parse_document(text, kind=DocumentKind.CLUSTER)
    return [str(problem) for problem in raised.value.problems]


def addresses(*cells: PhysicalCell) -> list[str]:
    """List the addresses of cells and all below, each cell before its children."""
    found: list[str] = []
    for cell in cells:
        found += [cell.address, *addresses(*cell.children)]
    return found
