"""`Placement`: the node and leaf cells of a pod, shared by engine, annotations and log."""

from dataclasses import dataclass

from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The leaf cells of one pod: device numbers on one node."""

    node: NodeName
    leaf_cells: tuple[int, ...]
    """In the order in which the container gets them."""
    chain: ChainName | None = None
    """Distinguishes devices of equal numbers if a node is in several chains."""
    vc_cell: str | None = None
    """Virtual address of the preassigned cell that it counts against; None if opportunistic."""
    vc_cell_type: CellTypeName | None = None
    """Type of that cell, by which the claim is found if addresses have changed."""
