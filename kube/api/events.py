"""Events: what happened to an object, shown to its owner by `kubectl describe`.

They are written in the background and dropped if there are too many: nothing waits for an Event.
The same one is not written again within a minute, so a Job of a thousand pods gets it once.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from kube.api.client import KubeClient, KubeError, Object
from service.clock import Clock
from service.memory import ExpiringMap

logger = logging.getLogger(__name__)

_COMPONENT: Final = "cellgate"
_WAITING: Final = 1_000
_REPEAT_SECONDS: Final = 60.0
_REMEMBERED: Final = 10_000
_MESSAGE_CHARS: Final = 1_024
"""The most that Kubernetes accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to one object."""

    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str
    reason: str
    message: str
    is_warning: bool = True
    is_unique: bool = False
    """Written once, even if several replicas report it: its name is made of its content."""
    resource_version: str = ""
    """The version of the object that a unique Event is about, where that matters."""

    @classmethod
    def about(
        cls,
        obj: Mapping[str, Any],
        *,
        reason: str,
        message: str,
        is_unique: bool = False,
        is_warning: bool = True,
    ) -> "Event":
        """Build an Event about a Kubernetes object; without a kind it is a pod."""
        metadata = obj["metadata"]
        return cls(
            namespace=metadata.get("namespace") or "default",
            api_version=obj.get("apiVersion") or "v1",
            kind=obj.get("kind") or "Pod",
            name=metadata.get("name") or "",
            uid=metadata.get("uid") or "",
            reason=reason,
            message=message[:_MESSAGE_CHARS],
            is_unique=is_unique,
            is_warning=is_warning,
            resource_version=str(metadata.get("resourceVersion") or "") if is_unique else "",
        )

    def to_object(self, *, now: datetime) -> Object:
        """Write it as Kubernetes expects it."""
        at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self._own_name(), "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
            },
            "reason": self.reason,
            "message": self.message,
            "type": "Warning" if self.is_warning else "Normal",
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }

    def _own_name(self) -> str:
        """A name that no other Event has, unless it is to be written once."""
        content = f"{self.uid}/{self.resource_version}/{self.reason}/{self.message}"
        own = uuid.uuid5(uuid.NAMESPACE_OID, content) if self.is_unique else uuid.uuid4()
        return f"{_COMPONENT}.{own.hex}"


class EventWriter:
    """Writes events in the background; `run` is a task of the caller's."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(_WAITING)
        self._written: ExpiringMap[Event, None] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )
        self.dropped = 0
        """Events that were too many, or that the API server refused."""

    def write(self, event: Event) -> None:
        """Write an event soon, unless the same one was written just now. Never waits."""
        if event in self._written:
            return
        self._written[event] = None
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            event = await self._waiting.get()
            path = f"/api/v1/namespaces/{event.namespace}/events"
            try:
                body = event.to_object(now=self._clock.now())
                await self._client.request("POST", path, body=body)
            except KubeError as exc:
                if event.is_unique and exc.is_conflict:
                    continue  # another replica has written it
                self.dropped += 1
                logger.info("event not written", extra={"path": path, "error": str(exc)})
