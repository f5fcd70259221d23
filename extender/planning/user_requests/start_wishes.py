"""Wished starts: owners are told when a start by the wished time is not likely, or was missed.

What is expected comes from `extender.forecasts`. Each is told once, as an Event on a pod of the
gang; a missed one is a row of the decision log, too.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NoReturn
from uuid import UUID, uuid5

from extender.cluster.journal import Journal
from extender.feeds.pod_feed import PodSink
from extender.outcomes.pod_events import PodEvents
from extender.queue.order.listing import Ranked
from policy.submission import GangKey
from policy.wording import moment
from service.clock import Clock
from service.memory import BoundedMap
from state.log.records import RowKind

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 5.0
_REMEMBERED: Final = 10_000
_ROWS: Final = UUID("5b0c2f0e-6c0a-4f0b-9a57-3f6f1f5f3d11")
"""Names the keys of rows, so that two leaders write one row."""


class StartWishes:
    """Watches gangs that wait and whose owners wish a start."""

    def __init__(
        self,
        pods: PodSink,
        *,
        waiting: Callable[[], Iterable[Ranked]],
        expected: Callable[[GangKey], float | None],
        journal: Journal,
        events: PodEvents,
        clock: Clock,
    ) -> None:
        """`expected` returns when a gang is expected to start, in seconds since 1970."""
        self._pods = pods
        self._waiting = waiting
        self._expected = expected
        self._journal = journal
        self._events = events
        self._clock = clock
        self._told: BoundedMap[tuple[GangKey, float, str], None] = BoundedMap(_REMEMBERED)

    async def run(self) -> NoReturn:
        """Tell owners until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            self.update()

    def update(self) -> None:
        """Tell owners of all gangs whose wished start is over, or is not likely any more."""
        now = self._clock.now().timestamp()
        for facts, _ in self._waiting():
            if facts.start_by is None:
                continue
            expected = self._expected(facts.gang)
            if now >= facts.start_by:
                self._miss(facts.gang, facts.start_by)
            elif expected is not None and expected > facts.start_by:
                why = (
                    f"gang {facts.gang} is expected to start about {moment(expected)}, after "
                    f"{moment(facts.start_by)}, its wished start"
                )
                self._tell(facts.gang, facts.start_by, "StartByUnlikely", why)

    def _miss(self, gang: GangKey, start_by: float) -> None:
        why = f"gang {gang} still waits at {moment(start_by)}, its wished start"
        if self._tell(gang, start_by, "StartByMissed", why):
            key = uuid5(_ROWS, f"{gang}/{gang.owner}/{start_by}")
            details = {"startBy": moment(start_by)}
            self._journal.note(RowKind.START_BY, str(gang), "missed", why, key=key, details=details)

    def _tell(self, gang: GangKey, start_by: float, reason: str, why: str) -> bool:
        """Write an Event once; return whether it was written now."""
        pod = next((pod for pod in self._pods.of_gang(gang) if pod.is_gated), None)
        if pod is None or (gang, start_by, reason) in self._told:
            return False
        self._told[gang, start_by, reason] = None
        self._events.start_by(pod, reason, why)
        logger.info("wished start not met", extra={"gang": str(gang), "why": why})
        return True
