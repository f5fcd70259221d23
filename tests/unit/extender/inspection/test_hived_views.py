"""HiveD's shapes."""

from extender.inspection.hived_views import ClusterStatus, VirtualLeaves
from policy.placement import Placement
from policy.submission import NodeName, VcName
from policy.topology import CellTypeName, ChainName
from tests.support.cells.builders import a_cluster


def test_virtual_leaves_are_numbered_level_by_level_below_their_cell() -> None:
    topology = a_cluster("2 racks x 2 nodes x 2 sockets x 2").promising("a", rack=1).build()
    (chain,) = topology.chains.values()
    node = chain.cells[1].children[1]
    assert node.node is not None
    devices = [leaf.device for socket in node.children for leaf in socket.children]
    placement = Placement(
        node=NodeName(node.node),
        leaf_cells=tuple(device for device in devices if device is not None),
        chain=ChainName(chain.name),
        vc_cell="a/0",
        vc_cell_type=CellTypeName("rack"),
    )

    assert VirtualLeaves(topology).addresses(placement) == [
        "a/0/1/2/4",
        "a/0/1/2/5",
        "a/0/1/3/6",
        "a/0/1/3/7",
    ]


def test_an_empty_cluster_has_empty_lists() -> None:
    status = ClusterStatus([], {}, None)
    assert status.whole() == {"physicalCluster": [], "virtualClusters": {}}
    assert VcName("a") not in status.virtual()
