"""How a trace becomes gangs on a cluster: flat, with whole nodes, or with VCs.

- `flat`: one VC, and members of one leaf cell each: no leaf cell is ever lost to fragments.
- `nodes`: one VC, and members of up to a node: large gangs need whole nodes.
- `vcs`: like `nodes`; the trace's VCs are promised nodes in proportion to what they ask for, and
  at least their largest gang.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from bench.core.clusters import LEAVES, build_racks
from bench.queue.trace import Job, Trace
from policy.submission import VcName
from policy.topology import Promise, Topology, VirtualCluster

_ONE_VC: Final = VcName("all")
_NODE_LEVEL: Final = 3
_RACK: Final = 8


class Form(StrEnum):
    """How a trace is replayed."""

    FLAT = "flat"
    NODES = "nodes"
    VCS = "vcs"


def shares_of(trace: Trace, *, nodes: int) -> dict[VcName, int]:
    """Return how many nodes each VC is promised."""
    load: dict[VcName, float] = {}
    least: dict[VcName, int] = {}
    for job in trace.jobs:
        vc = VcName(job.vc)
        load[vc] = load.get(vc, 0.0) + job.leaf_cells * job.seconds
        least[vc] = max(least.get(vc, 0), -(-job.leaf_cells // LEAVES))
    shares = dict(sorted(least.items()))
    for _ in range(nodes - sum(shares.values())):  # each node to the VC that lacks most
        needy = max(shares, key=lambda vc: (load[vc] / shares[vc], vc))
        shares[needy] += 1
    return shares


def build_cluster(shares: Mapping[VcName, int]) -> Topology:
    """Build a cluster whose nodes are all promised."""
    chain = build_racks(sum(shares.values()), rack=_RACK)
    vcs = {
        vc: VirtualCluster(
            name=vc, promises=(Promise(chain=chain.name, level=_NODE_LEVEL, count=count),)
        )
        for vc, count in shares.items()
    }
    return Topology(chains={chain.name: chain}, vcs=vcs)


def one_share(nodes: int) -> dict[VcName, int]:
    """Return the shares where all gangs belong to one VC."""
    return {_ONE_VC: nodes}


def vc_of(job: Job, form: Form) -> VcName:
    """Return the VC of a gang."""
    return VcName(job.vc) if form is Form.VCS else _ONE_VC


def sizes_of(leaf_cells: int, form: Form) -> Sequence[int]:
    """Return the leaf cells of each member of a gang."""
    if form is Form.FLAT:
        return [1] * leaf_cells
    whole, rest = divmod(leaf_cells, LEAVES)
    return [LEAVES] * whole + [rest] * (rest > 0)
