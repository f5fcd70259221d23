"""When gangs that are submitted now would start: computed with all starts, written for webhooks.

Gangs that do not exist, of every class and of sizes by powers of two, take part in the sampled
futures of each VC in which gangs run or wait. Nothing waits for the database; without it webhooks
tell nothing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.cluster.reader import ClusterReader
from extender.forecasts.queue_copy import CountedCells, count_cells
from extender.forecasts.run_forecasts import FollowedRun, RunForecasts
from extender.forecasts.start_forecasts import StartForecast, StartForecasts
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.starts import SHORTEST_WAIT
from policy.classes import OPPORTUNISTIC
from policy.errors import BackendError, ConflictError
from policy.policy import Policy
from policy.submission import GangKey, VcName
from service.clock import Clock
from state.ledger.ledger import LeaderTerm
from state.outlook.outlook import Outlook, OutlookEntry, OutlookStore

logger = logging.getLogger(__name__)

_MOST_PROBES: Final = 400
_EVERY_SECONDS: Final = 15.0
_WRITE_SECONDS: Final = 5.0


class OutlookWriter:
    """Says of which gangs the start is asked, and writes down the answers."""

    def __init__(
        self,
        starts: StartForecasts,
        run_times: RunForecasts,
        *,
        cluster: ClusterReader,
        policy: Callable[[], Policy],
        term: Callable[[], LeaderTerm],
        clock: Clock,
    ) -> None:
        self._starts = starts
        self._run_times = run_times
        self._cluster = cluster
        self._policy = policy
        self._term = term
        self._clock = clock
        self._store: OutlookStore | None = None
        self._next = float("-inf")

    def use(self, store: OutlookStore) -> None:
        """Write to a database from now on."""
        self._store = store
        self._starts.probes = self._probes

    def _probes(self, now: float) -> Stepwise[list[FollowedRun]]:
        if self._clock.monotonic() < self._next:
            return []
        cells = yield from count_cells(self._cluster)
        busy = Counter(run.keys.vc for run in self._run_times.followed)
        found = (
            _probe(vc, leaf_type, class_name=class_name, leaf_cells=size, now=now)
            for vc in sorted(busy, key=lambda vc: (-busy[vc], vc))
            for leaf_type, count in sorted(cells.usable_by(vc).items())
            for class_name in self._classes_in(vc, cells)
            for size in _sizes(count)
        )
        return [probe for probe, _ in zip(found, range(_MOST_PROBES), strict=False)]

    def _classes_in(self, vc: str, cells: CountedCells) -> list[str]:
        """Return the classes whose gangs can run in a VC: without a promise, opportunistic ones."""
        entries = self._policy().classes.entries
        if VcName(vc) not in cells.of_vcs or cells.of_vcs[VcName(vc)]:
            return [str(entry.name) for entry in entries] or [""]
        return [str(entry.name) for entry in entries if entry.cell_priority == OPPORTUNISTIC]

    async def write(self) -> None:
        """Write when new gangs would start, unless that was done a moment ago."""
        now = self._clock.monotonic()
        if self._store is None or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        entries = [_entry(run, forecast) for run, forecast in self._starts.outlook.values()]
        outlook = Outlook(computed_at=self._clock.now(), entries=entries)
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._store.save(outlook, term=self._term())
        except (BackendError, ConflictError, TimeoutError) as exc:
            logger.warning("outlook not written, will retry", extra={"error": str(exc)})


def _sizes(most: int) -> Iterator[int]:
    """Yield powers of two below a number of leaf cells, then the number itself."""
    size = 1
    while size < most:
        yield size
        size *= 2
    if most > 0:
        yield most


def _probe(vc: str, leaf_type: str, *, class_name: str, leaf_cells: int, now: float) -> FollowedRun:
    return FollowedRun(
        run="",
        gang=GangKey("", f"{vc}/{leaf_type}/{class_name}/{leaf_cells}"),
        keys=RunKeys(vc=vc, leaf_cells=leaf_cells),
        class_name=class_name,
        asked=now,
        started=None,
        estimate=None,
        limit=None,
        leaf_type=leaf_type,
    )


def _entry(run: FollowedRun, forecast: StartForecast) -> OutlookEntry:
    place, expected = forecast.place, forecast.expected
    return OutlookEntry(
        vc=run.keys.vc,
        leaf_type=run.leaf_type or "",
        class_name=run.class_name,
        leaf_cells=run.keys.leaf_cells,
        level=place.level if place else "",
        place=place.level_place if place else 0,
        low=round(forecast.at + expected.low) if expected else 0.0,
        high=round(forecast.at + expected.high) if expected else 0.0,
        unknown=forecast.unknown,
        starts_at_once=forecast.drawn.seconds <= SHORTEST_WAIT,
    )
