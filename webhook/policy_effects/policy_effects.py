"""The warnings about a changed policy: what it would have decided over the last day.

Rules, quotas, classes and identities are played at once, in a thread. An answer that is not ready
in time is computed to its end, and a repeated dry run has it. The order of the queue and the cells
of a cluster need the planner, so a dry run does not play them: it names the command that does.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn

from policy.errors import BackendError
from policy.parser import DocumentKind
from policy.past.effect import find_effect
from policy.past.gangs import HeldCharge, read_day
from policy.past.sentences import PREFIX, tell_effect
from policy.policy import Policy
from policy.wording import listing
from service.clock import Clock
from service.memory import ExpiringMap
from state.past.past import PastStore, StoredAdmission
from webhook.policy_effects.recent_admissions import RecentAdmissions

logger = logging.getLogger(__name__)

PLAYED: Final = frozenset(
    {
        DocumentKind.CLASSES,
        DocumentKind.RULES,
        DocumentKind.QUOTAS,
        DocumentKind.IDENTITY,
        DocumentKind.BILLING,
    }
)
_PLANNED: Final = (DocumentKind.QUEUES, DocumentKind.CLUSTER)
_ANSWER_SECONDS: Final = 2.2
"""From the beginning of a review: the API server waits three seconds for it."""
_READ_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 120.0
_MOST_RUNNING: Final = 8
"""Answers that are computed, one after the other; others are asked for again."""
_KEPT: Final = 32
_KEPT_SECONDS: Final = 300.0
"""How long an answer that was not ready in time is repeated; then the day has moved on."""
_WHAT: Final = f"{PREFIX}what this would have changed over the last day"
ASK_AGAIN: Final = f"{_WHAT} is being computed; ask again in a minute"
UNKNOWN: Final = f"{_WHAT} is not known: the database does not answer"
DAMAGED: Final = f"{_WHAT} is not known: the decision log cannot be read"
TOO_LONG: Final = f"{_WHAT} takes too long to compute"

Change = tuple[str, str]
"""The versions of two policies."""


class PolicyEffects:
    """Answers dry runs. Used from one event loop."""

    def __init__(self, store: PastStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._running: dict[Change, asyncio.Task[list[str]]] = {}
        self._late: set[Change] = set()
        """Those of which was said that they are being computed."""
        self._known: ExpiringMap[Change, list[str]] = ExpiringMap(
            _KEPT, seconds=_KEPT_SECONDS, monotonic=clock.monotonic
        )
        self.recent = RecentAdmissions(store, clock=clock)
        self._is_stopped = False

    async def run(self) -> NoReturn:
        """Keep the last day in memory, until cancelled; a play that is under way ends then, too."""
        try:
            await self.recent.run()
        finally:
            self._is_stopped = True

    def end_of_answer(self) -> float:
        """Return until when a review that begins now can wait for an answer."""
        return self._clock.monotonic() + _ANSWER_SECONDS

    async def tell(self, before: Policy, after: Policy, *, until: float) -> list[str]:
        """Return what a policy would have changed, or that it is not known yet, as warnings."""
        kinds = changed_kinds(before, after)
        planned = [kind for kind in _PLANNED if kind in kinds]
        told = [_not_played(planned)] if planned else []
        if kinds.isdisjoint(PLAYED):
            return told
        return [*told, *await self._play(before, after, until=until)]

    async def _play(self, before: Policy, after: Policy, *, until: float) -> list[str]:
        change = before.version, after.version
        known = self._known.get(change)
        if known is not None:
            return known
        task = self._running.get(change)
        if task is None and len(self._running) >= _MOST_RUNNING:
            return [ASK_AGAIN]
        if task is None:
            task = self._running[change] = asyncio.create_task(self._compute(before, after))
            task.add_done_callback(lambda done: self._note(change, done))
        seconds = max(0.0, until - self._clock.monotonic())
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            return task.result()
        self._late.add(change)
        return [ASK_AGAIN]

    def _note(self, change: Change, done: "asyncio.Task[list[str]]") -> None:
        """Keep an answer that came too late for its dry run."""
        del self._running[change]
        if change not in self._late:
            return
        self._late.remove(change)
        if not done.cancelled() and done.exception() is None and done.result() != [UNKNOWN]:
            self._known[change] = done.result()

    async def _compute(self, before: Policy, after: Policy) -> list[str]:
        async with self._one_at_a_time:
            recent = self.recent
            since, until, rows = recent.since, recent.until, recent.rows
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    charges = await self._store.charges(since=since)
            except (BackendError, TimeoutError) as exc:
                logger.info("charges not read for a dry run", extra={"error": str(exc)})
                return [UNKNOWN]
            play = partial(
                _tell,
                rows,
                charges,
                before=before,
                after=after,
                span=(since.timestamp(), until.timestamp()),
                may_go_on=self._until_stopped(),
            )
            try:
                return await asyncio.to_thread(play)
            except Exception:  # a damaged row; no document is refused for it
                logger.exception("the last day cannot be played for a dry run")
                return [DAMAGED]

    def _until_stopped(self) -> Callable[[], bool]:
        """Return whether a play may go on: a thread keeps its process from ending."""
        end = self._clock.monotonic() + _LONGEST_SECONDS
        return lambda: not self._is_stopped and self._clock.monotonic() < end


def _tell(
    rows: Sequence[StoredAdmission],
    charges: Sequence[HeldCharge],
    *,
    before: Policy,
    after: Policy,
    span: tuple[float, float],
    may_go_on: Callable[[], bool],
) -> list[str]:
    """Play the day; called in a thread."""
    since, until = span
    day = read_day((row.read() for row in rows), charges, policy=before, since=since, until=until)
    effect = find_effect(day, before=before, after=after, may_go_on=may_go_on)
    return [TOO_LONG] if effect is None else tell_effect(effect)


def changed_kinds(before: Policy, after: Policy) -> frozenset[DocumentKind]:
    """Return the kinds of documents in which two policies differ."""
    old, new = json.loads(before.content), json.loads(after.content)
    return frozenset(kind for kind in DocumentKind if old.get(kind) != new.get(kind))


def _not_played(kinds: Sequence[DocumentKind]) -> str:
    told = listing([str(kind) for kind in kinds])
    return (
        f"{PREFIX}what the {told} document would have changed needs the planner: see `cellgate "
        "what-if --policy FILE --from 1d`"
    )
