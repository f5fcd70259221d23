"""Which gangs may use the gaps before reservations, and what reservations mean for each gang."""

from collections.abc import Callable, Collection
from math import log2

from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import FREE, Guard
from extender.queue.reserve.model import Reservation
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.submission import GangKey

_CLASSIFIED = 64
"""Gangs with unknown run times that are looked at in one review."""
_LONGEST_CLASS = 64
_FEWEST_RUNS = 10
"""Ended runs from which a gap is judged: one short run says little about the next one."""


class Gaps:
    """Tells for each gang which cells it leaves alone, and how long it may run on others."""

    def __init__(
        self,
        cells: Cells,
        run_times: RunTimes,
        *,
        seen: SeenGangs,
        waiting: WaitingGangs,
        ranking: Ranking,
        in_force: Callable[[], Collection[Reservation]],
    ) -> None:
        self._cells = cells
        self._run_times = run_times
        self._seen = seen
        self._waiting = waiting
        self._ranking = ranking
        self._in_force = in_force
        self._unknown: dict[GangKey, None] = {}
        """Gangs that could use a gap if it were known how long they run."""
        self._backfilled: list[GangKey] = []

    def guard(self, gang: QueuedGang) -> Guard:
        """Return what reservations mean for a gang that is planned now.

        They do not bind a gang of which members run, or that waits for its victims to end. A gang
        that may preempt, of a higher priority than the one with the reservation, could end that
        gang as soon as it runs: such gangs are not bound either.
        """
        others = [one for one in self._in_force() if one.gang != gang.key]
        if not others or gang.has_begun or self._cells.is_preempting(gang.key):
            return FREE
        domain = self._cells.domain(gang.first.request)
        binding = tuple(one for one in others if one.domain == domain and _binds(one, gang))
        free = [one for one in others if one not in binding and one.domain is not None]
        run = self._ends_within(gang.key) if binding else None
        if binding and run is None:
            self._unknown[gang.key] = None
        minimum = self._ranking.order.queues.preemption.minimum_run
        now = self._ranking.now
        due = [one for one in free if domain is None and max(0.0, one.deadline - now) < minimum]
        return Guard(
            binding=binding,
            closed=tuple(node for one in due for node in one.nodes),
            avoided=tuple(node for one in free for node in one.nodes),
            ends_at=None if run is None else now + run,
        )

    def _ends_within(self, gang: GangKey) -> float | None:
        """Return within which time a gang ends, safely enough to use a gap; None if unknown.

        A limit is enforced. A prediction counts if enough runs have ended that it was made from.
        """
        run = self._run_times.expected(gang)
        high = run.high if run.runs >= _FEWEST_RUNS else None
        known = [seconds for seconds in (high, run.limit) if seconds is not None]
        return min(known) if known else None

    def note_backfill(self, gang: GangKey, reservation: Reservation) -> None:
        """Note that a gang uses reserved cells meanwhile."""
        self._backfilled.append(gang)

    def classify(self, gang: QueuedGang) -> None:
        """Note how long a gang is expected to run: in half octaves, unknown times last."""
        run = self._ends_within(gang.key)
        gang.run_class = _LONGEST_CLASS if run is None else run_class(run)

    def classify_again(self) -> None:
        """Plan gangs again of which it is known since how long they run: some in each review."""
        for key in list(self._unknown)[:_CLASSIFIED]:
            del self._unknown[key]
            gang = self._seen.find(key)
            if gang is None or not self._in_force() or self._waiting.pool(key) is None:
                continue
            before = gang.run_class
            self.classify(gang)
            if gang.run_class != before:
                self._seen.note_change(key)
            else:
                self._unknown[key] = None

    def take_backfilled(self) -> list[GangKey]:
        """Return the gangs that use reserved cells since this was last asked."""
        found, self._backfilled = self._backfilled, []
        return found


def _binds(one: Reservation, gang: QueuedGang) -> bool:
    first = gang.first
    return not (first.may_preempt and first.request.priority > one.priority)


def run_class(seconds: float) -> int:
    """Return the class of a run time: each is longer than the one before by a half octave."""
    return min(_LONGEST_CLASS - 1, 1 + int(2 * log2(max(1.0, seconds))))
