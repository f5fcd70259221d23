"""Windows of the Queues document as leaf cells that pools lack for a time, for sampled futures.

A maintenance window takes its nodes from the cluster. A VC lacks only what the other nodes cannot
back of its promise. An advance reservation takes its leaf cells from its VC, for all gangs that it
does not name.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.queue.forecast.closures import Closure, CopiedPool
from policy.queues.queues import Queues
from policy.queues.windows import MaintenanceWindow
from policy.submission import NodeName
from policy.topology import PhysicalCell, Topology

WHOLE: Final = "all"
"""The VC of the pools that opportunistic gangs use."""
NodesOf = Callable[[MaintenanceWindow], Collection[NodeName]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastGang:
    """What windows know of a gang whose start is forecast."""

    user: str
    group: str | None
    vc: str
    class_name: str
    priority: int
    leaf_cells: int
    leaf_type: str | None
    namespace: str


def exempt_names(queues: Queues, gang: ForecastGang) -> frozenset[str]:
    """Return the closures whose leaf cells are reserved for a gang."""
    return frozenset(_name(one.name) for one in queues.reservations if one.covers(gang))


def closures_of(
    queues: Queues,
    *,
    cells: Mapping[CopiedPool, int],
    topology: Topology | None,
    nodes_of: NodesOf,
    now: float,
) -> list[Closure]:
    """Return what pools lack by windows that are not over; `cells` are those of empty pools."""
    found: list[Closure] = []
    if topology is None:
        return found
    for window in (one for one in queues.maintenance if now < one.ends):
        lacks = _lacks(_cells_on(topology, nodes_of(window)), cells)
        found += [
            _closure(f"maintenance {window.name}", pool, count, window.begins, window.ends, now)
            for pool, count in lacks.items()
        ]
    for entry in (one for one in queues.reservations if now < one.ends):
        own = [pool for pool in cells if pool[0] == entry.vc]
        typed = [pool for pool in own if entry.leaf_type in (None, pool[1])]
        for pool in sorted(typed, key=lambda pool: (-cells[pool], pool))[:1]:
            name = _name(entry.name)
            found.append(_closure(name, pool, entry.total, entry.begins, entry.ends, now))
    return found


def _name(entry: str) -> str:
    return f"reservation {entry}"


def _closure(
    name: str, pool: CopiedPool, leaf_cells: int, begins: float, ends: float, now: float
) -> Closure:
    return Closure(
        name=name, pool=pool, leaf_cells=leaf_cells, begins=begins - now, ends=ends - now
    )


def _lacks(closed: Mapping[str, int], cells: Mapping[CopiedPool, int]) -> dict[CopiedPool, int]:
    """Return how many leaf cells each pool lacks without those of some nodes."""
    lacks: dict[CopiedPool, int] = {}
    for pool, promised in cells.items():
        vc, leaf_type = pool
        left = cells.get((WHOLE, leaf_type), 0) - closed.get(leaf_type, 0)
        missing = closed.get(leaf_type, 0) if vc == WHOLE else promised - max(0, left)
        if missing > 0 and closed.get(leaf_type):
            lacks[pool] = missing
    return lacks


def _cells_on(topology: Topology, nodes: Collection[NodeName]) -> Counter[str]:
    """Count the leaf cells of some nodes by leaf type."""
    found: Counter[str] = Counter()
    for chain in topology.chains.values():
        for cell in _nodes(chain.cells):
            if cell.node in nodes:
                found[chain.leaf_type] += chain.levels[cell.level - 1].leaf_count
    return found


def _nodes(cells: Iterable[PhysicalCell]) -> Iterable[PhysicalCell]:
    for cell in cells:
        if cell.node is not None:
            yield cell
        else:
            yield from _nodes(cell.children)
