"""Since when gangs ask whose pods were ended for others: in memory, and in the ledger.

The new pods of such a gang rank by the age of the first ones, however these were ended. Only gangs
that belong to a workload keep their age: the name alone may belong to another gang by then. Without
a ledger, a new leader does not know these ages.

An age belongs to a gang and its submitter, since a pod can name the workload of another user as its
own. The ledger keeps it under a name that contains both. Rows of earlier versions have the name of
the gang alone; they count for any submitter.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NoReturn

from extender.feeds.pod_feed import PodSink
from extender.feeds.workload_pods import ANY
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, ConflictError
from policy.submission import GangKey, UserName
from state.ledger.ledger import LeaderTerm, Ledger

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 0.5
_Asker = tuple[GangKey, UserName]
"""A gang and its submitter."""


class ReclaimedAges:
    """Notes the ages of gangs that are reclaimed, and finds them again."""

    def __init__(
        self, ledger: Ledger | None, *, pods: PodSink, term: Callable[[], LeaderTerm]
    ) -> None:
        self._ledger = ledger
        self._pods = pods
        self._term = term
        self._seen: set[_Asker] = set()
        self._unread: dict[_Asker, None] = {}
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
        self._pods.note_gang_asked(gang, asked, submitter=pod.charged_user)
        if self._ledger is not None:
            at, key = datetime.fromtimestamp(asked, UTC), _key_of(gang, pod.charged_user)
            self._unsaved[key] = min(at, self._unsaved.get(key, at))

    def _see(self, pod: ManagedPod) -> None:
        asker = pod.gang.key, pod.charged_user
        if pod.gang.key.owner and asker not in self._seen:
            self._seen.add(asker)
            self._unread[asker] = None

    def _forget(self, pod: ManagedPod) -> None:
        asker = pod.gang.key, pod.charged_user
        left = self._pods.of_gang(pod.gang.key)
        if not any(other.charged_user == pod.charged_user for other in left):
            self._seen.discard(asker)
            self._unread.pop(asker, None)

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
            stored = {_key_of(gang, submitter): (gang, submitter) for gang, submitter in asked}
            stored |= {gang: (gang, ANY) for gang, _ in asked}
            found = await self._ledger.first_asked(list(stored))
            for asker in asked:
                self._unread.pop(asker, None)
            for key, at in sorted(found.items()):
                gang, submitter = stored[key]
                self._pods.note_gang_asked(gang, at.timestamp(), submitter=submitter)


def _key_of(gang: GangKey, submitter: UserName) -> GangKey:
    """Return the key under which the ledger keeps the age of a gang of a submitter."""
    return replace(gang, name=f"{gang.name} of {submitter}")
