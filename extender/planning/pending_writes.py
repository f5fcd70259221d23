"""Pods that we are writing to at this moment.

kube-scheduler may see what we wrote before we have heard that it was written. A binding that it
asks for then would name the version from before, which the API server refuses: three requests
instead of one, and many of them when everybody is busy. So bindings wait for the answer.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from policy.submission import PodUid
from service.tasks import wait_up_to

_PATIENCE_SECONDS: Final = 0.3
"""kube-scheduler waits for a second. A binding under an old version is only slow, not wrong."""


class Writing:
    """What is being written; of a pod that is written twice at once, the later write counts."""

    def __init__(self) -> None:
        self._over: dict[PodUid, asyncio.Event] = {}

    @contextmanager
    def to(self, pod: PodUid) -> Iterator[None]:
        """Let everybody know that a pod is being written."""
        over = self._over[pod] = asyncio.Event()
        try:
            yield
        finally:
            over.set()
            if self._over.get(pod) is over:
                del self._over[pod]

    async def over(self, pod: PodUid) -> None:
        """Wait until nothing is being written to a pod, or for too long."""
        over = self._over.get(pod)
        if over is not None:
            await wait_up_to(_PATIENCE_SECONDS, over)
