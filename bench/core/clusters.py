"""Clusters to measure on: racks of 25 nodes with two sockets of four leaf cells."""

from policy.submission import LeafType, NodeName, VcName
from policy.topology import (
    CellAddress,
    CellTypeName,
    Chain,
    ChainName,
    Level,
    PhysicalCell,
    Promise,
    Topology,
    VirtualCluster,
)

LEAVES = 8
RACK = 25
_CHAIN = ChainName("rack")


def node_names(nodes: int) -> list[NodeName]:
    """All nodes, in the order of the racks."""
    return [NodeName(f"node-{index:05}") for index in range(nodes)]


def build_topology(nodes: int, *, rack: int = RACK) -> Topology:
    """VC full was promised 30 % of the nodes, VC a the rest."""
    full = int(nodes * 0.3)
    chain = build_racks(nodes, rack=rack)
    vcs = {
        VcName(name): VirtualCluster(
            name=VcName(name), promises=(Promise(chain=_CHAIN, level=3, count=number),)
        )
        for name, number in (("full", full), ("a", nodes - full))
    }
    return Topology(chains={_CHAIN: chain}, vcs=vcs)


def build_racks(nodes: int, *, rack: int) -> Chain:
    """Build a chain of racks."""
    names = node_names(nodes)
    return Chain(
        name=_CHAIN,
        leaf_type=LeafType("A100"),
        levels=_levels(rack),
        cells=tuple(
            _rack(f"rack-{index:03}", names[index * rack : (index + 1) * rack])
            for index in range(-(-nodes // rack))
        ),
    )


def _levels(rack: int) -> tuple[Level, ...]:
    rungs = (("A100", 0, 1), ("socket", 4, 4), ("node", 2, 8), ("rack", rack, 8 * rack))
    return tuple(
        Level(
            level=index + 1,
            cell_type=CellTypeName(name),
            child_count=children,
            leaf_count=leaves,
            is_node=name == "node",
        )
        for index, (name, children, leaves) in enumerate(rungs)
    )


def _rack(address: str, nodes: list[NodeName]) -> PhysicalCell:
    children = tuple(_node(address, node) for node in nodes)
    return PhysicalCell(address=CellAddress(address), level=4, children=children)


def _node(rack: str, node: NodeName) -> PhysicalCell:
    address = f"{rack}/{node}"
    sockets = tuple(
        PhysicalCell(
            address=CellAddress(f"{address}/{socket}"),
            level=2,
            node=node,
            children=tuple(
                PhysicalCell(
                    address=CellAddress(f"{address}/{socket}/{leaf}"),
                    level=1,
                    node=node,
                    device=socket * 4 + leaf,
                )
                for leaf in range(4)
            ),
        )
        for socket in range(2)
    )
    return PhysicalCell(address=CellAddress(address), level=3, node=node, children=sockets)
