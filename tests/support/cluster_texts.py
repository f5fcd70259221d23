"""Cluster documents for tests, in both forms."""

import yaml


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
