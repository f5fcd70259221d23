"""Tells the engine which gangs have not run for long enough to be preempted.

A gang starts when its first member is bound; Kubernetes keeps that time on the pod, so that a new
leader knows it. What the engine is told is in the log. When a minimum run is over, gangs of the VC
are planned again at that moment.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.cluster.members import Member
from extender.feeds.pod_feed import PodSink
from extender.queue.protection.minimum_runs import MinimumRuns
from policy.queues.queues import PreemptionRules
from policy.submission import GangKey, PodUid
from service.clock import Clock
from service.tasks import in_slices, wait_up_to

_LONGEST_SLEEP_SECONDS: Final = 3600.0


class RunProtection:
    """Follows the starts of gangs, and keeps the engine informed."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        rules: Callable[[], PreemptionRules],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._rules = rules
        self._clock = clock
        self._runs = MinimumRuns()
        self._minimum: float | None = None
        """The minimum by the document that is in force; None before the first start."""
        self._gang_of: dict[PodUid, GangKey] = {}
        """Members that are bound."""
        self._news = asyncio.Event()
        cluster.members.on_change.append(self._note)

    def note_rules(self) -> None:
        """The document has changed."""
        self._news.set()

    def _note(self, uid: PodUid, member: Member | None) -> None:
        """A member got a place, runs, or has no place any more."""
        if member is None:
            self._forget(uid)
        elif member.is_bound and self._gang_of.get(uid) != member.request.gang:
            self._forget(uid)
            self._gang_of[uid] = member.request.gang
            self._runs.start(member.request.gang, at=self._started(uid))
            if self._minimum is None:
                self._minimum = self._rules().minimum_run
            for gang in self._runs.update(self._minimum, now=self._clock.monotonic()):
                self._tell(gang)
            self._news.set()

    def _started(self, uid: PodUid) -> float:
        """Return when a pod was bound, on the clock that never goes back."""
        pod, now = self._pods.get(uid), self._clock.monotonic()
        if pod is None or not pod.bound_at:
            return now
        return now - max(0.0, self._clock.now().timestamp() - pod.bound_at)

    def _forget(self, uid: PodUid) -> None:
        gang = self._gang_of.pop(uid, None)
        if gang is not None and not self._cluster.members.of_gang(gang):
            self._runs.end(gang)

    def _tell(self, gang: GangKey) -> None:
        self._cluster.observe_minimum_run(gang, seconds=self._runs.minimum_run(gang))

    def update(self) -> Stepwise[None]:
        """Tell the engine whose minimum run has begun or is over, by the document in force."""
        self._minimum = self._rules().minimum_run
        for gang in self._runs.update(self._minimum, now=self._clock.monotonic()):
            self._tell(gang)
            yield

    async def run(self) -> NoReturn:
        """Wake up whenever a minimum run is over, until cancelled."""
        while True:
            self._news.clear()
            await in_slices(self.update())
            seconds = self._runs.next_end - self._clock.monotonic()
            await wait_up_to(min(max(0.0, seconds), _LONGEST_SLEEP_SECONDS), self._news)
