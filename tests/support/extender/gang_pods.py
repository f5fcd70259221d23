"""Pods of gangs in VC lab, each with the eight leaf cells of a node."""

from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName
from tests.support.kube.pods import PodBuilder, a_pod


def member(name: str, *, gang: str = "g", size: int = 2) -> PodBuilder:
    return a_pod(name).with_gpus(8).in_vc("lab").in_gang(gang, size=size)


def bound(name: str, node: str, **fields: object) -> PodBuilder:
    placement = Placement(
        node=NodeName(node),
        leaf_cells=tuple(range(8)),
        chain=ChainName("rack"),
        vc_cell_type=CellTypeName("node"),
    )
    return member(name, **fields).placed(placement).bound_to(node)  # type: ignore[arg-type]
