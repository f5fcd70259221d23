"""Events: what `kubectl describe` shows people about an object.

Written behind: `post` only puts one into a bounded queue. An event that finds no room, or that the
API server does not take, is lost and counted; nothing waits for it.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn
from uuid import uuid4

from kube.client import KubeClient, KubeError

logger = logging.getLogger(__name__)

_MOST_PENDING: Final = 5_000
_MOST_CHARS: Final = 1_024
"""As much as the API server takes of a message."""
_PER_SECOND: Final = 50.0
"""People read them; the API server has better things to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to an object, in plain words."""

    about: ObjectRef
    reason: str
    """One word, for machines."""
    message: str
    is_warning: bool = False


class EventWriter:
    """Writes events, one after the other."""

    def __init__(self, client: KubeClient, *, component: str) -> None:
        self._client = client
        self._component = component
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_MOST_PENDING)
        self.written = 0
        self.lost = 0

    def post(self, event: Event) -> None:
        """Take an event to be written later. Never waits and never raises."""
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.lost += 1

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
                self.written += 1
            except KubeError as exc:
                self.lost += 1
                logger.warning("event not written", extra={"error": str(exc)})
            await asyncio.sleep(1 / _PER_SECOND)

    async def _write(self, event: Event) -> None:
        namespace = event.about.namespace or "default"
        await self._client.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/events",
            body=_to_object(event, namespace, self._component, datetime.now(UTC)),
        )


def _to_object(event: Event, namespace: str, component: str, now: datetime) -> dict[str, Any]:
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    about = event.about
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about.name[:200]}.{uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            **({"uid": about.uid} if about.uid else {}),
        },
        "reason": event.reason,
        "message": event.message[:_MOST_CHARS],
        "type": "Warning" if event.is_warning else "Normal",
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }
