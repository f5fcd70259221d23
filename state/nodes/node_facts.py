"""How large gangs can be: by the nodes that the extender's leader saw in the last days.

Promises and workloads are judged by them. They are a help to people and no guarantee: if they are
unknown, or were not read for a while, nothing is said about what can never run.
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
"""How often nodes are read: for 10,000 nodes this takes Postgres about 0.3 s."""
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
        depends = document is not None and document.depends_on_nodes
        counts: tuple[NodeCount, ...] | None = ()
        if document is not None and depends:
            counts = await self.count(document.label_keys, within_seconds=_READ_SECONDS)
        if counts is None:
            return
        if depends or document is not self._document:
            self._capacity = document.capacity(counts) if document else None
        self._document = document
        self._valid_until = self._monotonic() + _VALID_SECONDS
