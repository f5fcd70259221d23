"""Ends runs and pods of the history that ended while no leader followed them.

A pod that is open in the history and that a leader does not know is gone: it ended while no leader
ran. Such an end is presumed; if another process saw the end, its record counts, whenever it
arrives. A leader looks for such pods when it has taken over. What another process records late can
open a run again, mostly soon after a take-over, so the leader looks again, each time after a pause
twice as long.
"""

import logging
import math
from collections.abc import Callable
from typing import Final

from extender.history.run_facts import close_lost_pods, close_lost_run
from extender.runs.run_book import RunBook
from policy.submission import PodUid
from service.clock import Clock
from state.history.facts import Certainty, GangFacts
from state.history.runs import RunHistory

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 600.0
_PAGE: Final = 1000
_NAMED: Final = 10
"""How many gangs one line of the log names."""


class LostRuns:
    """Finds open runs of the history without pods."""

    def __init__(
        self,
        history: RunHistory,
        *,
        book: RunBook,
        epoch: Callable[[], int],
        stamp: Callable[[], str],
        clock: Clock,
        write: Callable[[GangFacts], None],
    ) -> None:
        self._history = history
        self._book = book
        self._epoch = epoch
        self._stamp = stamp
        self._clock = clock
        self._write = write
        self._seen_epoch: int | None = None
        self._due_at = -math.inf
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self.on_presumed: Callable[[], None] = lambda: None
        """Called for each run whose end is presumed."""

    async def close_if_due(self) -> None:
        """End what is lost, if it is time for that; BackendError leaves it due."""
        now, epoch = self._clock.monotonic(), self._epoch()
        if epoch != self._seen_epoch:
            self._seen_epoch, self._due_at = epoch, now
            self._pause_seconds = _FIRST_PAUSE_SECONDS
        if now < self._due_at:
            return
        await self.close()
        self._due_at = now + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def close(self) -> int:
        """End the runs of the history whose pods are gone; return how many."""
        after, closed = "", 0
        while page := await self._history.open_runs(_PAGE, after=after):
            after = page[-1].run
            gone = [facts.gang for facts in page if self._compare(facts)]
            if gone:
                extra = {"runs": len(gone), "gangs": gone[:_NAMED]}
                logger.warning("runs ended unseen", extra=extra)
            closed += len(gone)
        return closed

    def _compare(self, facts: GangFacts) -> bool:
        """Compare an open run with the pods that are known; True if none of them is."""
        known = [PodUid(uid) for uid in facts.members if self._book.knows(PodUid(uid))]
        if not known:
            self.on_presumed()
            self._write(close_lost_run(facts, now=self._clock.now(), stamp=self._stamp()))
            return True
        self._book.adopt(known[0], facts.extent)
        lost = [
            PodUid(uid)
            for uid, member in facts.members.items()
            if member["certainty"] == Certainty.NO_END and not self._book.knows(PodUid(uid))
        ]
        if lost:
            self._write(close_lost_pods(facts, lost, now=self._clock.now(), stamp=self._stamp()))
        return False
