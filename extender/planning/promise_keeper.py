"""Tells owners about reservations, and keeps the promise ledger.

A reservation that is made or slips, or that ends before its gang starts, is an Event on a pod of
its gang, a log line and a metric, and is written to the database. The next leader reads the
promises in force before it makes new ones, so that a sticky reservation survives a change of
leaders. Nothing waits for the database: without it promises are written later, and a new leader
starts without the old ones after a while; those that it has replaced by then end when it reads
them.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NoReturn

from extender.feeds.pod_feed import PodSink
from extender.metrics import ExtenderMetrics
from extender.outcomes.pod_events import PodEvents
from extender.planning.promise_rows import from_row, to_row
from extender.queue.reserve.model import Reservation, ReservationEnd, SlipCause
from extender.queue.reserve.reservations import Reservations
from extender.queue.reserve.sentences import (
    end_sentence,
    overrun_sentence,
    reserved_sentence,
    slip_sentence,
)
from policy.errors import BackendError, ConflictError
from policy.submission import GangKey
from policy.wording import moment
from service.clock import Clock
from service.memory import BoundedMap
from state.ledger.ledger import LeaderTerm
from state.promises.promises import PromiseRow, PromiseStore

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5.0
_SHOWN: Final = timedelta(days=1)
"""How long ended promises are shown."""
_MOST_ENDED: Final = 5_000
_EXPECTED: Final = frozenset({ReservationEnd.STARTED, ReservationEnd.GONE})
"""Ends that owners need no word about."""


class PromiseKeeper:
    """Reports changes of reservations, and writes them down."""

    def __init__(
        self,
        *,
        reservations: Reservations,
        pods: PodSink,
        events: PodEvents,
        metrics: ExtenderMetrics,
        term: Callable[[], LeaderTerm],
        clock: Clock,
    ) -> None:
        self._store: PromiseStore | None = None
        self._reservations = reservations
        self._pods = pods
        self._events = events
        self._metrics = metrics
        self._term = term
        self._clock = clock
        self._told: dict[GangKey, Reservation] = {}
        """The reservations in force as they were last reported."""
        self.ended: BoundedMap[GangKey, Reservation] = BoundedMap(_MOST_ENDED)
        """The last reservations of gangs that have none now."""
        self._unsaved: dict[tuple[GangKey, datetime], PromiseRow] = {}
        self._woken = asyncio.Event()

    def use(self, store: PromiseStore) -> None:
        """Keep the ledger in a database; no reservation is made before it has been read."""
        self._store = store
        self._reservations.is_open = False

    def find(self, gang: GangKey) -> Reservation | None:
        """Return the reservation of a gang, or the last one that it had."""
        return self._reservations.find(gang) or self.ended.get(gang)

    # -- reports

    def report(self, changed: Sequence[Reservation], backfilled: Sequence[GangKey]) -> None:
        """Take in what a step of the planner has changed."""
        for gang in backfilled:
            self._metrics.backfilled.inc()
            logger.info("gang uses reserved leaf cells meanwhile", extra={"gang": str(gang)})
        for one in changed:
            self._tell(one, self._told.pop(one.gang, None))
            if one.end is None:
                self._told[one.gang] = one
            else:
                self.ended[one.gang] = one
            self._save(one)

    def _tell(self, one: Reservation, before: Reservation | None) -> None:
        if one.end is not None:
            self._metrics.reservations_ended.labels(one.end).inc()
            self._tell_end(one, one.end)
            return
        if before is None:
            self._metrics.reservations_made.inc()
            self._tell_owner(one, "Reserved", reserved_sentence(one, moment))
        for slip in one.slips[len(before.slips) if before is not None else 0 :]:
            self._metrics.reservation_slips.labels(slip.cause).inc()
            self._tell_owner(one, "ReservationSlipped", slip_sentence(slip, moment))
            if one.entry is not None and slip.cause is SlipCause.OVERRUN and slip.gang is not None:
                self._tell_late(one, slip.gang)

    def _tell_end(self, one: Reservation, end: ReservationEnd) -> None:
        if end in _EXPECTED:
            self._log(one, end_sentence(end))
        else:
            self._tell_owner(one, "ReservationEnded", end_sentence(end))

    def _tell_owner(self, one: Reservation, reason: str, text: str) -> None:
        self._log(one, text)
        pod = next((pod for pod in self._pods.of_gang(one.gang) if pod.node is None), None)
        if pod is not None:
            self._events.reserved(pod, reason, text)

    def _tell_late(self, one: Reservation, late: GangKey) -> None:
        for pod in list(self._pods.of_gang(late))[:1]:
            self._events.overruns(pod, overrun_sentence(one, moment))

    def _log(self, one: Reservation, text: str) -> None:
        logger.info("reservation changed", extra={"gang": str(one.gang), "why": text})

    def _save(self, one: Reservation) -> None:
        if self._store is not None:
            row = to_row(one)
            self._unsaved[row.gang, row.made_at] = row
            self._woken.set()

    # -- the database

    async def run(self) -> NoReturn:
        """Read the promises of earlier leaders, then write every change, until cancelled."""
        is_read = self._store is None
        while True:
            try:
                is_read = is_read or await self._read()
                await self._write()
                await self._woken.wait()
            except (BackendError, ConflictError) as exc:
                self._reservations.is_open = True  # gangs must not wait for the database
                logger.warning("promises not written, will retry", extra={"error": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self) -> bool:
        """Take over the promises in force; those that this leader made meanwhile count more."""
        assert self._store is not None
        rows = await self._store.load(ended_since=self._clock.now() - _SHOWN)
        found = [one for row in rows if (one := _read_row(row)) is not None]
        for one in found:
            if one.end is not None:
                self.ended[one.gang] = one
        in_force = [one for one in found if one.end is None]
        made = {one.gang: one for one in self._reservations.in_force()}
        self._told = {**{one.gang: one for one in in_force}, **made}
        for one in in_force:
            if to_row(one).made_at != to_row(self._told[one.gang]).made_at:
                at = self._clock.now().timestamp()
                self._save(replace(one, end=ReservationEnd.REPLACED, ended_at=at))
        self._reservations.restore(self._told.values())
        self._reservations.is_open = True
        return True

    async def _write(self) -> None:
        self._woken.clear()
        rows = dict(self._unsaved)
        if self._store is not None and rows:
            await self._store.save(list(rows.values()), term=self._term())
            for key, row in rows.items():
                if self._unsaved.get(key) is row:
                    del self._unsaved[key]


def _read_row(row: PromiseRow) -> Reservation | None:
    try:
        return from_row(row)
    except (KeyError, TypeError, ValueError) as exc:
        extra = {"gang": str(row.gang), "error": repr(exc)}
        logger.warning("promise of another version not read", extra=extra)
        return None
