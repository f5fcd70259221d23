"""A light copy of the queue, for sampled futures: pools with counts, no topology.

A guaranteed gang must fit into the leaf cells of its leaf type that its VC was promised and nodes
back: opportunistic gangs make way. An opportunistic gang must fit into what all gangs leave free.
A gang that names no leaf type counts for the one of which its VC has most, or the cluster if its VC
has no leaf cells.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.cluster.reader import ClusterReader
from extender.forecasts.run_forecasts import FollowedRun, RunForecasts
from extender.forecasts.window_closures import (
    WHOLE,
    ForecastGang,
    NodesOf,
    closures_of,
    exempt_names,
)
from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.copied_gangs import CopiedGang, KeptCells
from extender.queue.forecast.expectation import Expectation
from extender.queue.forecast.futures import QueueCopy
from policy.policy import Policy
from policy.submission import ClassName, GangKey, VcName
from policy.topology import PhysicalCell, PinnedCellId, Topology

_STEPS: Final = 5
"""Gangs between two yields: what is expected of one is found within a millisecond or two."""


NO_PROMISES: Final[Mapping[VcName, Counter[str]]] = {}
NOTHING_RESERVED: Final[Mapping[GangKey, KeptCells]] = {}


@dataclass(frozen=True, slots=True)
class NewGang:
    """A gang that does not exist, and how many gangs would be ahead of it."""

    run: FollowedRun
    ahead: int


class QueueCopier:
    """Copies the queue as it is now."""

    def __init__(
        self,
        cluster: ClusterReader,
        run_times: RunForecasts,
        *,
        policy: Callable[[], Policy],
    ) -> None:
        self._cluster = cluster
        self._run_times = run_times
        self._policy = policy
        self.window_nodes: NodesOf = lambda window: window.nodes
        """The nodes of a maintenance window."""

    def copy(
        self,
        order: Sequence[GangKey],
        *,
        new: Sequence[NewGang] = (),
        without: Collection[GangKey] = (),
        reserved: Mapping[GangKey, KeptCells] = NOTHING_RESERVED,
        now: float,
    ) -> Stepwise[QueueCopy]:
        """Copy the queue `without` some gangs; `new` are gangs that do not exist."""
        topology = self._cluster.topology
        cells = yield from count_cells(self._cluster)
        free = cells.as_pools()
        queues = self._policy().queues
        closures = closures_of(
            queues, cells=dict(free), topology=topology, nodes_of=self.window_nodes, now=now
        )
        known: dict[tuple[object, ...], Expectation] = {}
        places = {gang: place for place, gang in enumerate(order) if gang not in without}
        asked = {one.run.gang for one in new}
        running: list[CopiedGang] = []
        waiting: dict[tuple[int, int], CopiedGang] = {}
        for number, run in enumerate(tuple(self._run_times.followed)):
            if number % _STEPS == 0:
                yield
            place = places.get(run.gang)
            if run.gang in asked or not self._takes_part(run, is_waiting=place is not None):
                continue
            copied = self._copied(run, cells, known, now=now)
            if place is not None:
                waiting[place, len(new)] = replace(copied, kept=reserved.get(run.gang))
                continue
            running.append(copied)
            for pool in copied.pools:
                free[pool] = free.get(pool, 0) - copied.leaf_cells
        for number, one in enumerate(new):
            if number % _STEPS == 0:
                yield
            copied = self._copied(one.run, cells, known, now=now)
            waiting[one.ahead, number] = replace(copied, is_probe=True)
        return QueueCopy(
            free=free,
            running=running,
            waiting=[waiting[place] for place in sorted(waiting)],
            reserves=queues.reservation.per_pool > 0,
            closures=closures,
        )

    def _takes_part(self, run: FollowedRun, *, is_waiting: bool) -> bool:
        """Tell whether a gang waits for cells, or holds some: others wait for quota, or are held.

        A gang that has begun since the queue was read is in neither state.
        """
        if is_waiting:
            return run.started is None
        return run.started is not None or self._cluster.known_sizes(run.gang) is not None

    def priority(self, class_name: str) -> int:
        """Return the priority of a class in the cell engine."""
        classes = self._policy().classes
        rank = classes.rank(ClassName(class_name))
        return 0 if rank is None else classes.entries[rank].cell_priority

    def _copied(
        self,
        run: FollowedRun,
        cells: "CountedCells",
        known: dict[tuple[object, ...], Expectation],
        *,
        now: float,
    ) -> CopiedGang:
        same = (run.keys, run.estimate, run.class_name)
        expected = known.get(same)
        if expected is None:
            expected = known[same] = self._run_times.expectation(run)
        leaf_type = run.leaf_type or _largest(cells.usable_by(run.keys.vc))
        whole: CopiedPool = (WHOLE, leaf_type)
        is_guaranteed = self.priority(run.class_name) >= 0 and run.keys.vc in cells.of_vcs
        elapsed = run.elapsed(now)
        limit = run.limit_left(now, elapsed=elapsed)
        queues = self._policy().queues
        quantile = queues.reservation.backfill_quantile
        time = expected.run_time(elapsed=0.0, quantile=quantile, limit=limit)
        return CopiedGang(
            gang=run.gang,
            pool=(run.keys.vc, leaf_type) if is_guaranteed else whole,
            also=(whole,) if is_guaranteed else (),
            leaf_cells=run.keys.leaf_cells,
            left=expected.draw(elapsed=elapsed, limit=limit),
            safe=time.ends_within,
            assumed=queues.run_time.longest_of(run.class_name) or queues.run_time.cap,
            exempt=self._exempt(run) if queues.reservations else frozenset(),
        )

    def _exempt(self, run: FollowedRun) -> frozenset[str]:
        gang = ForecastGang(
            user=run.keys.user,
            group=run.group,
            vc=run.keys.vc,
            class_name=run.class_name,
            priority=self.priority(run.class_name),
            leaf_cells=run.keys.leaf_cells,
            leaf_type=run.leaf_type,
            namespace=run.gang.namespace,
        )
        return exempt_names(self._policy().queues, gang)


def _largest(cells: Mapping[str, int]) -> str:
    return max(sorted(cells), key=lambda leaf_type: cells[leaf_type], default="")


class CountedCells:
    """Leaf cells by leaf type, as far as nodes back them."""

    def __init__(
        self, of_all: Counter[str], of_vcs: Mapping[VcName, Counter[str]] = NO_PROMISES
    ) -> None:
        self.of_all = of_all
        self.of_vcs = of_vcs
        """What each VC of the Cluster document was promised."""

    def usable_by(self, vc: str) -> Counter[str]:
        """Return what a VC was promised, or all leaf cells if it was promised none."""
        return self.of_vcs.get(VcName(vc)) or self.of_all

    def as_pools(self) -> dict[CopiedPool, int]:
        """Return the leaf cells of all pools, as if no gang held any."""
        counts: list[tuple[str, Counter[str]]] = [*self.of_vcs.items(), (WHOLE, self.of_all)]
        return {
            (vc, leaf_type): count for vc, by_type in counts for leaf_type, count in by_type.items()
        }


def count_cells(cluster: ClusterReader) -> Stepwise[CountedCells]:
    """Count leaf cells: those of the Cluster document, or without one those of all nodes."""
    topology, found = cluster.topology, Counter[str]()
    if topology is None:
        for node, _ in (yield from cluster.nodes_stepwise()):
            found[node.leaf_type or ""] += node.leaf_count
        return CountedCells(found)
    for chain in topology.chains.values():
        leaves = (chain.levels[cell.level - 1].leaf_count for cell in chain.cells)
        found[chain.leaf_type] += sum(leaves)
    yield
    return CountedCells(found, _cells_of_vcs(topology))


def _cells_of_vcs(topology: Topology) -> dict[VcName, Counter[str]]:
    pinned = _pinned_cells(topology) if any(vc.pinned for vc in topology.vcs.values()) else {}
    found: dict[VcName, Counter[str]] = {}
    for name, vc in topology.vcs.items():
        cells = found[name] = Counter()
        for promise in vc.promises:
            chain = topology.chains[promise.chain]
            cells[chain.leaf_type] += promise.count * chain.levels[promise.level - 1].leaf_count
        for cell in vc.pinned:
            leaf_type, leaf_count = pinned.get(cell, ("", 0))
            cells[leaf_type] += leaf_count
    return found


def _pinned_cells(topology: Topology) -> dict[PinnedCellId, tuple[str, int]]:
    return {
        cell.pinned: (chain.leaf_type, chain.levels[cell.level - 1].leaf_count)
        for chain in topology.chains.values()
        for cell in _walk(chain.cells)
        if cell.pinned is not None
    }


def _walk(cells: Collection[PhysicalCell]) -> Iterator[PhysicalCell]:
    for cell in cells:
        yield cell
        if cell.node is None:
            yield from _walk(cell.children)
