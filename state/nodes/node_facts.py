"""How large gangs can be: by the nodes that the extender's leader saw in the last days.

Promises and workloads are judged by them. They are a help to people and no guarantee: if they are
unknown, or were not read for a while, nothing is said about what can never run.

To count all nodes is costly, and they seldom change. So they are counted again only if the database
says that something has changed, or after an hour: then nodes that left long ago are forgotten.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from policy.capacity import Capacity
from policy.cluster.document import ClusterDocument, NodeCount
from policy.errors import BackendError
from state.nodes.seen_nodes import SeenNodes

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 30.0
"""How often the database is asked whether nodes have changed: that takes it less than 1 ms."""
_COUNT_AGAIN_SECONDS: Final = 3600.0
"""How long a count of unchanged nodes is used: one of 10,000 nodes takes Postgres about 0.1 s."""
_VALID_SECONDS: Final = 120.0
"""How long facts count that could not be read again: nodes may have been added since."""
_ANSWER_SECONDS: Final = 1.0
"""How long a review waits for the database."""
_READ_SECONDS: Final = 10.0
"""How long the background task does."""


class NodeFacts:
    """How large gangs can be, by the Cluster document in force and the nodes seen lately."""

    def __init__(
        self,
        seen: SeenNodes | None,
        *,
        document: Callable[[], ClusterDocument | None],
        monotonic: Callable[[], float],
    ) -> None:
        """`document` returns the Cluster document in force.

        Without `seen`, only a document that lists its cells says how large gangs can be.
        """
        self._seen = seen
        self._document_now = document
        self._monotonic = monotonic
        self._document: ClusterDocument | None = None
        self._capacity: Capacity | None = None
        self._valid_until = 0.0
        self._counted = -1
        """The version of the nodes that were counted."""
        self._count_again_at = 0.0
        self._woken = asyncio.Event()

    @property
    def capacity(self) -> Capacity | None:
        """How large gangs can be; None if that is unknown."""
        is_current = self._document is self._document_now()
        return self._capacity if is_current and self._monotonic() < self._valid_until else None

    async def count(
        self, keys: Sequence[str], *, within_seconds: float = _ANSWER_SECONDS
    ) -> tuple[NodeCount, ...] | None:
        """Count the nodes by devices and labels; None if that is unknown."""
        if self._seen is None:
            return None
        try:
            async with asyncio.timeout(within_seconds):
                return await self._seen.count(keys)
        except (BackendError, TimeoutError) as exc:
            logger.warning("nodes not read, will retry", extra={"error": str(exc)})
            return None

    def wake(self) -> None:
        """Read the nodes soon: the Cluster document may be another one."""
        self._woken.set()

    async def refresh_if_old(self) -> None:
        """Read the nodes now unless that was done a moment ago: for a caller without `run`."""
        is_current = self._document is self._document_now()
        age = self._monotonic() - (self._valid_until - _VALID_SECONDS)
        if not is_current or age >= _EVERY_SECONDS:
            await self.refresh()

    async def run(self) -> NoReturn:
        """Read the nodes periodically, and when the policy changes, until cancelled."""
        while True:
            self._woken.clear()
            await self.refresh()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _EVERY_SECONDS)

    async def refresh(self) -> None:
        """Read the nodes now; what was known stays if that fails."""
        document = self._document_now()
        if document is not None and document.depends_on_nodes:
            if not await self._count_changed(document):
                return
        elif document is not self._document:
            self._capacity = document.capacity(()) if document else None
        self._document = document
        self._valid_until = self._monotonic() + _VALID_SECONDS

    async def _count_changed(self, document: ClusterDocument) -> bool:
        """Count the nodes if they have changed since; False if the database did not answer."""
        version = await self._version()
        if version is None:
            return False
        is_known = document is self._document and version == self._counted
        if is_known and self._monotonic() < self._count_again_at:
            return True
        counts = await self.count(document.label_keys, within_seconds=_READ_SECONDS)
        if counts is None:
            return False
        self._capacity = document.capacity(counts)
        # The version was read before: what changed meanwhile is counted again.
        self._counted = version
        self._count_again_at = self._monotonic() + _COUNT_AGAIN_SECONDS
        return True

    async def _version(self) -> int | None:
        if self._seen is None:
            return None
        try:
            async with asyncio.timeout(_READ_SECONDS):
                return await self._seen.version()
        except (BackendError, TimeoutError) as exc:
            logger.warning("nodes not read, will retry", extra={"error": str(exc)})
            return None
