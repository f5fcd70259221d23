"""Cluster documents as text, in both forms, and how to read them.

`hived_text` and `derived_text` write clusters of racks, nodes and leaf cells; `hived` joins those
parts of HiveD's YAML that a test is about.
"""

import pytest
import yaml

from policy.cluster.document import ClusterDocument
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.topology import Chain, ChainName, PhysicalCell, Topology

TYPES = """
  cellTypes:
    PAIR: {childCellType: G, childCellNumber: 2}
    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 2}
"""
POOL = "  - {cellType: POOL, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}"


def hived_text(*, racks: int = 2, nodes: int = 2, leaves: int = 8, **vcs: int) -> str:
    """HiveD's YAML: racks of nodes named `node-00`…; each VC is promised so many nodes."""
    names = [f"node-{index:02}" for index in range(racks * nodes)]
    cells = [
        {
            "cellType": "rack",
            "cellChildren": [
                {"cellAddress": name} for name in names[rack * nodes : (rack + 1) * nodes]
            ],
        }
        for rack in range(racks)
    ]
    return yaml.safe_dump(
        {
            "physicalCluster": {
                "cellTypes": {
                    "rack": {"childCellType": "node", "childCellNumber": nodes},
                    "node": {
                        "childCellType": "A100",
                        "childCellNumber": leaves,
                        "isNodeLevel": True,
                    },
                },
                "physicalCells": cells,
            },
            "virtualClusters": {
                name: {"virtualCells": [{"cellType": "rack.node", "cellNumber": count}]}
                for name, count in vcs.items()
            },
        }
    )


def derived_text(**vcs: int) -> str:
    """The derived form: racks by label; each VC is promised so many nodes."""
    return yaml.safe_dump(
        {
            "apiVersion": "cellgate.io/v1",
            "kind": "Cluster",
            "nodeTopology": [
                {
                    "levels": ["topology.kubernetes.io/rack", "kubernetes.io/hostname"],
                    "leafResource": "nvidia.com/gpu",
                    "leafTypeLabel": "nvidia.com/gpu.product",
                }
            ],
            "virtualClusters": {
                name: {
                    "virtualCells": [
                        {"leafType": "A100", "level": "kubernetes.io/hostname", "cellNumber": count}
                    ]
                }
                for name, count in vcs.items()
            },
        }
    )


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
