"""Since when gangs ask whose pods were ended for others: in memory, and in the ledger.

The new pods of such a gang rank by the age of the first ones, however these were ended. Only gangs
that belong to a workload keep their age: the name alone may belong to another gang by then. Without
a ledger, a new leader does not know these ages.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NoReturn

from extender.feeds.pod_feed import PodSink
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, ConflictError
from policy.submission import GangKey
from state.ledger.ledger import LeaderTerm, Ledger

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 0.5


class ReclaimedAges:
    """Notes the ages of gangs that are reclaimed, and finds them again."""

    def __init__(
        self, ledger: Ledger | None, *, pods: PodSink, term: Callable[[], LeaderTerm]
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._term = term
        self._seen: set[GangKey] = set()
        self._unread: dict[GangKey, None] = {}
        """Gangs with pods whose age the ledger may know."""
        self._unsaved: dict[GangKey, datetime] = {}
        if ledger is not None:
            pods.on_appear.append(self._see)
            pods.on_end.append(self._forget)

    def note(self, pod: ManagedPod) -> None:
        """A pod was ended for another gang."""
        gang = pod.gang.key
        if not gang.owner:
            return
        asked = self._pods.workloads.first_asked(pod)
        self._pods.note_gang_asked(gang, asked)
        if self._ledger is not None:
            at = datetime.fromtimestamp(asked, UTC)
            self._unsaved[gang] = min(at, self._unsaved.get(gang, at))

    def _see(self, pod: ManagedPod) -> None:
        gang = pod.gang.key
        if gang.owner and gang not in self._seen:
            self._seen.add(gang)
            self._unread[gang] = None

    def _forget(self, pod: ManagedPod) -> None:
        if not self._pods.of_gang(pod.gang.key):
            self._seen.discard(pod.gang.key)
            self._unread.pop(pod.gang.key, None)

    async def run(self) -> NoReturn:
        """Write to and read from the ledger until cancelled; what fails is retried."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.settle()
            except (BackendError, ConflictError) as exc:
                logger.warning("ages of gangs not kept, will retry", extra={"error": str(exc)})

    async def settle(self) -> None:
        """Save the ages of gangs that were reclaimed; read those of gangs that have appeared."""
        assert self._ledger is not None, "without a ledger nothing is kept"
        if self._unsaved:
            saved = dict(self._unsaved)
            await self._ledger.note_reclaimed(saved, term=self._term())
            self._unsaved = {
                gang: at for gang, at in self._unsaved.items() if saved.get(gang) != at
            }
        if self._unread:
            asked = list(self._unread)
            found = await self._ledger.first_asked(asked)
            for gang in asked:
                self._unread.pop(gang, None)
            for gang, at in sorted(found.items()):
                self._pods.note_gang_asked(gang, at.timestamp())
