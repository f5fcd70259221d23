"""How large a gang can be at most: the cells of the cluster at full strength, and of each VC.

All numbers are upper bounds. Whether a gang fits now is for the cell engine to say; here is only
what a gang exceeds that can never fit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policy.pod_resources import Amounts
from policy.submission import LeafType, VcName
from policy.topology import Chain, PhysicalCell, Topology


@dataclass(frozen=True, slots=True)
class Share:
    """Leaf cells that gangs of a VC, or of the whole cluster, can use in one chain."""

    leaf_count: int
    largest: int
    """Leaf cells of the largest cell within one node: a pod lies in one such cell."""

    def __add__(self, other: "Share") -> "Share":
        return Share(self.leaf_count + other.leaf_count, max(self.largest, other.largest))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCapacity:
    """The cells of one leaf type; a gang lies in one chain."""

    leaf_type: LeafType
    all_cells: Share
    of_vc: Mapping[VcName, Share] = field(default_factory=dict)
    """What VCs were promised; a VC that is missing was promised nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """All chains of the cluster."""

    chains: tuple[ChainCapacity, ...]
    largest: Amounts = ()
    """What one node has at most of each resource beside leaf cells, as far as that is known."""


def largest_member(capacity: Capacity, leaf_type: LeafType | None) -> int:
    """Return how many leaf cells one pod can have at most; 0 if there are none of that type."""
    chains = (one for one in capacity.chains if leaf_type in (None, one.leaf_type))
    return max((chain.all_cells.largest for chain in chains), default=0)


def capacity_of(topology: Topology) -> Capacity:
    """Return the capacity of cells that a document lists."""
    return Capacity(chains=tuple(_of_chain(chain, topology) for chain in topology.chains.values()))


def _of_chain(chain: Chain, topology: Topology) -> ChainCapacity:
    per_node = {level.level: level.leaf_count for level in chain.levels}
    node_level = max((level.level for level in chain.levels if level.is_node), default=1)
    pinned = {cell.pinned: cell for cell in _pinned(chain.cells)}
    of_vc: dict[VcName, Share] = {}
    for name, vc in topology.vcs.items():
        mine = [(one.level, one.count) for one in vc.promises if one.chain == chain.name]
        # A gang lies in pinned cells or in others; their sum is more than it can use.
        mine += [(pinned[one].level, 1) for one in vc.pinned if one in pinned]
        for level, count in mine:
            share = Share(per_node[level] * count, per_node[min(level, node_level)])
            of_vc[name] = of_vc.get(name, Share(0, 0)) + share
    return ChainCapacity(
        leaf_type=chain.leaf_type,
        all_cells=Share(per_node[chain.levels[-1].level] * len(chain.cells), per_node[node_level]),
        of_vc=of_vc,
    )


def _pinned(cells: Iterable[PhysicalCell]) -> Iterable[PhysicalCell]:
    for cell in cells:
        if cell.pinned is not None:
            yield cell
        yield from _pinned(cell.children)
