"""Leaf cells that became free: which gangs they may help."""

from dataclasses import dataclass

from extender.cells.model import FreeMode, MemberRequest
from policy.placement import Placement
from policy.submission import LeafType, VcName
from policy.topology import Chain, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedCells:
    """Leaf cells of one type that a member has left."""

    leaf_type: LeafType
    vc: VcName | None
    """The VC whose promise they counted against; None if the member was opportunistic."""


def freed_by(
    request: MemberRequest, placement: Placement | None, topology: Topology | None
) -> FreedCells | None:
    """Return what becomes free when a member leaves its place; None if that may be anything.

    Members of a gang that spans chains leave cells of several types. The cells of a gang that are
    kept until it ends become free together.
    """
    chain = None if placement is None or topology is None else _chain(placement, topology)
    if placement is None or chain is None:
        return None
    if request.spans_chains or request.free_mode is FreeMode.WHOLE:
        return None
    return FreedCells(leaf_type=chain.leaf_type, vc=request.vc if placement.vc_cell else None)


def _chain(placement: Placement, topology: Topology) -> Chain | None:
    return None if placement.chain is None else topology.chains.get(placement.chain)
