"""A light copy of the queue, for sampled futures: pools with counts, no topology.

A guaranteed gang must fit into the leaf cells of its leaf type that its VC was promised and nodes
back: opportunistic gangs make way. An opportunistic gang must fit into what all gangs leave free.
A gang that names no leaf type counts for the one of which its VC has most.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.cluster.reader import ClusterReader
from extender.forecasts.run_forecasts import FollowedRun, RunForecasts
from extender.queue.forecast.expectation import Expectation
from extender.queue.forecast.futures import CopiedGang, Draw, Pool, QueueCopy
from policy.policy import Policy
from policy.submission import ClassName, GangKey, VcName
from policy.topology import PhysicalCell, PinnedCellId, Topology

_WHOLE: Final = "all"
_STEPS: Final = 50


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

    def copy(
        self, order: Iterable[GangKey], *, extra: FollowedRun | None = None, now: float
    ) -> Stepwise[QueueCopy]:
        """Copy the queue; `extra` is a gang that does not exist and is ranked by its class."""
        topology = self._cluster.topology
        cells = _cells_of_vcs(topology) if topology is not None else {}
        yield
        free = _free(cells, topology)
        known: dict[tuple[object, ...], Expectation] = {}
        order = self._with(list(order), extra)
        places = {gang: place for place, gang in enumerate(order)}
        running: list[CopiedGang] = []
        waiting: dict[int, CopiedGang] = {}
        followed = [run for run in self._run_times.followed if not extra or run.gang != extra.gang]
        followed += [extra] if extra else []
        for number, run in enumerate(followed):
            if number % _STEPS == 0:
                yield
            copied = self._copied(run, cells, known, now=now)
            if run.gang in places and run.started is None:
                waiting[places[run.gang]] = copied
            elif run.gang not in places:
                running.append(copied)
                for pool in copied.pools:
                    free[pool] = free.get(pool, 0) - copied.leaf_cells
        return QueueCopy(
            free=free,
            running=running,
            waiting=[waiting[place] for place in sorted(waiting)],
            reserves=self._policy().queues.reservation.per_pool > 0,
        )

    def _with(self, order: list[GangKey], extra: FollowedRun | None) -> list[GangKey]:
        """Put a gang that does not exist behind all whose class is not lower."""
        if extra is None:
            return order
        own = self._priority(extra)
        ahead = [gang for gang in order if self._is_ahead(gang, own)]
        return [*ahead, extra.gang, *(gang for gang in order if not self._is_ahead(gang, own))]

    def _is_ahead(self, gang: GangKey, priority: int) -> bool:
        run = self._run_times.run_of(gang)
        return run is None or self._priority(run) >= priority

    def _priority(self, run: FollowedRun) -> int:
        classes = self._policy().classes
        rank = classes.rank(ClassName(run.class_name))
        return 0 if rank is None else classes.entries[rank].cell_priority

    def _copied(
        self,
        run: FollowedRun,
        cells: Mapping[VcName, Mapping[str, int]],
        known: dict[tuple[object, ...], Expectation],
        *,
        now: float,
    ) -> CopiedGang:
        same = (run.keys, run.estimate, run.class_name)
        expected = known.get(same)
        if expected is None:
            expected = known[same] = self._run_times.expectation(run)
        leaf_type = run.leaf_type or _largest(cells.get(VcName(run.keys.vc), {}))
        whole: Pool = (_WHOLE, leaf_type)
        is_guaranteed = self._priority(run) >= 0 and VcName(run.keys.vc) in cells
        elapsed = run.elapsed(now)
        limit = run.limit_left(now, elapsed=elapsed)
        quantile = self._policy().queues.reservation.backfill_quantile
        time = expected.run_time(elapsed=0.0, quantile=quantile, limit=limit)
        return CopiedGang(
            gang=run.gang,
            pool=(run.keys.vc, leaf_type) if is_guaranteed else whole,
            also=(whole,) if is_guaranteed else (),
            leaf_cells=run.keys.leaf_cells,
            left=_draw(expected, elapsed, limit),
            safe=time.ends_within,
        )


def _draw(expected: Expectation, elapsed: float, limit: float | None) -> Draw:
    return lambda share: expected.left(share, elapsed=elapsed, limit=limit)


def _largest(cells: Mapping[str, int]) -> str:
    return max(sorted(cells), key=lambda leaf_type: cells[leaf_type], default="")


def _cells_of_vcs(topology: Topology) -> dict[VcName, Counter[str]]:
    """Return the leaf cells of each VC by leaf type, as far as nodes back them."""
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


def _free(cells: Mapping[VcName, Counter[str]], topology: Topology | None) -> dict[Pool, int]:
    """Return the leaf cells of all pools, as if no gang held any."""
    free: dict[Pool, int] = {
        (vc, leaf_type): count
        for vc, counts in cells.items()
        for leaf_type, count in counts.items()
    }
    for chain in topology.chains.values() if topology is not None else ():
        whole: Pool = (_WHOLE, chain.leaf_type)
        leaves = sum(chain.levels[cell.level - 1].leaf_count for cell in chain.cells)
        free[whole] = free.get(whole, 0) + leaves
    return free
