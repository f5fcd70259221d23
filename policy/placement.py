"""Where a pod is, or is to be: the one type that engine, annotations and log share."""

from dataclasses import dataclass

from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The leaf cells of one pod: device numbers on one node."""

    node: NodeName
    leaf_cells: tuple[int, ...]
    """In the order in which the container is told them."""
    chain: ChainName | None = None
    """Tells devices of equal numbers apart where a node stands in several chains."""
    vc_cell: str | None = None
    """Virtual address of the preassigned cell that it counts against; None if opportunistic."""
    vc_cell_type: CellTypeName | None = None
    """Type of that cell: finds the claim again when addresses have changed with the cluster."""
