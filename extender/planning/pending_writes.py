"""Pods that are being written to at this moment.

kube-scheduler may see a write before the extender has the answer to it. A binding at that moment
would name the resource version from before the write, and the API server would refuse it: three
requests instead of one, and many of them under load. So a binding waits for the answer.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from policy.submission import PodUid
from service.tasks import wait_up_to

_PATIENCE_SECONDS: Final = 0.3
"""kube-scheduler waits for a second. A binding under an old version is only slow, not wrong."""


class PendingWrites:
    """Writes under way, by pod; of two writes to one pod, the later one counts."""

    def __init__(self) -> None:
        self._done: dict[PodUid, asyncio.Event] = {}

    @contextmanager
    def writing(self, pod: PodUid) -> Iterator[None]:
        """Note that a pod is being written to, for as long as the context lasts."""
        done = self._done[pod] = asyncio.Event()
        try:
            yield
        finally:
            done.set()
            if self._done.get(pod) is done:
                del self._done[pod]

    async def wait(self, pod: PodUid) -> None:
        """Wait until no write to a pod is under way, but not for long."""
        done = self._done.get(pod)
        if done is not None:
            await wait_up_to(_PATIENCE_SECONDS, done)
