"""A VC alone: the same world with nothing but the cells that one VC was promised.

A VC that waits longer among others than alone has lost something by sharing: an *anomaly*. The
cells of its promise are chosen in the order of the topology, the largest first; which of several
equal cells it gets makes no difference to it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from policy.submission import NodeName, VcName
from policy.topology import CellAddress, Chain, PhysicalCell, Topology, VirtualCluster
from timemachine.comparison import Anomaly, Grouping, Side
from timemachine.model import Arrival, World

_LEAST_SECONDS: Final = 1.0


def promised_vcs(world: World) -> list[VcName]:
    """Return the VCs that were promised cells, sorted; none without a Cluster document."""
    vcs = world.topology.vcs if world.topology is not None else {}
    return sorted(name for name, vc in vcs.items() if vc.promises or vc.pinned)


def arrivals_of(arrivals: Sequence[Arrival], vc: VcName) -> list[Arrival]:
    """Return the gangs of one VC."""
    return [one for one in arrivals if one.vc == vc]


def alone_in(world: World, name: VcName) -> World:
    """Return the world that has only the cells of one VC, and that VC."""
    assert world.topology is not None, "only VCs of a Cluster document are promised cells"
    vc = world.topology.vcs[name]
    chains = {
        chain.name: replace(chain, cells=cells)
        for chain in world.topology.chains.values()
        if (cells := _cells_of(vc, chain))
    }
    left = Counter(node for chain in chains.values() for node in _leaves_in(chain.cells))
    return replace(
        world,
        title=f"VC {name} alone",
        topology=Topology(chains=chains, vcs={name: vc}),
        nodes=[
            replace(node, leaf_count=left[node.name]) for node in world.nodes if left[node.name]
        ],
    )


def _cells_of(vc: VirtualCluster, chain: Chain) -> tuple[PhysicalCell, ...]:
    """Return the cells of a chain that a VC was promised, with what is around them."""
    wanted: Counter[int] = Counter()
    for one in vc.promises:
        wanted[one.level] += one.count * (one.chain == chain.name)
    chosen = {cell.address: None for cell in _walk(chain.cells) if cell.pinned in vc.pinned}
    for level in sorted(wanted, reverse=True):
        free = _free_cells(chain.cells, level, chosen)
        for _, address in zip(range(wanted[level]), free, strict=False):
            chosen[address] = None
    return tuple(part for cell in chain.cells if (part := _part(cell, chosen)) is not None)


def _walk(cells: Sequence[PhysicalCell]) -> Iterator[PhysicalCell]:
    for cell in cells:
        yield cell
        yield from _walk(cell.children)


def _free_cells(
    cells: Sequence[PhysicalCell], level: int, chosen: dict[CellAddress, None]
) -> list[CellAddress]:
    """Return the cells of a level that neither lie in a chosen one nor contain one."""
    found: list[CellAddress] = []
    for cell in cells:
        if cell.address in chosen or cell.level < level:
            continue
        if cell.level > level:
            found += _free_cells(cell.children, level, chosen)
        elif not any(inner.address in chosen for inner in _walk(cell.children)):
            found.append(cell.address)
    return found


def _part(cell: PhysicalCell, chosen: dict[CellAddress, None]) -> PhysicalCell | None:
    """Return what is left of a cell; None if nothing of it is chosen."""
    if cell.address in chosen:
        return cell
    parts = [part for child in cell.children if (part := _part(child, chosen)) is not None]
    return replace(cell, children=tuple(parts)) if parts else None


def _leaves_in(cells: Sequence[PhysicalCell]) -> Iterator[NodeName]:
    """Yield the node of each leaf cell."""
    for cell in _walk(cells):
        if not cell.children and cell.node is not None:
            yield cell.node


def anomaly_of(vc: VcName, together: Side, alone: Side) -> Anomaly | None:
    """Compare the waits of a VC among others and alone; None if it is not worse off."""
    shared, own = together.by[Grouping.VC].get(vc), alone.all
    if shared is None or not own.gangs:
        return None
    anomaly = Anomaly(vc=vc, mean_seconds=shared.mean - own.mean, p95_seconds=shared.p95 - own.p95)
    is_worse = max(anomaly.mean_seconds, anomaly.p95_seconds) >= _LEAST_SECONDS
    return anomaly if is_worse else None
