"""A live copy of one kind of object: list once, then watch.

A feed goes on after every failure of the API server: an ended stream is resumed from the last
resource version, a version that is too old (410) leads to a new list, and failures are retried with
a jittered backoff. The sink sees each object at least once and in order.
"""

import asyncio
import logging
import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from kube.api.client import KubeClient, KubeError, Object
from service.clock import Clock

logger = logging.getLogger(__name__)

_PAGE_SIZE = "500"
_WATCH_SECONDS = 60
"""Then the API server ends a stream. Short, because only this reveals a dead connection."""
_PATIENCE = 1.25
"""A stream that is silent for this multiple of that time is dead."""
_BACKOFF_FIRST_SECONDS = 0.2
_BACKOFF_MOST_SECONDS = 10.0


class Sink(Protocol):
    """Where the objects of a feed go. Must not raise: one bad object must not stop the feed."""

    def replace(self, objects: Sequence[Object]) -> None:
        """Forget all objects; these are the ones that exist."""

    def upsert(self, obj: Object) -> None:
        """An object appeared or changed."""

    def remove(self, obj: Object) -> None:
        """An object was deleted; this is its last state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSource:
    """Where a feed gets its objects, and where they go."""

    path: str
    sink: Sink
    query: Mapping[str, str] = field(default_factory=dict)
    trim: Callable[[Object], Object] | None = None
    """Keeps of each object what the sink looks at: a list holds all of them at once."""
    prepare: Callable[[Object], Awaitable[None]] | None = None
    """Does what takes long about an object that appeared or changed, before the sink gets it."""
    is_optional: bool = False
    """Whether the cluster may lose the kind: the feed ends then, and the sink keeps its objects. If
    the kind cannot be listed, as when its conversion webhook is broken, it is as good as synced,
    and followed once it can be."""


class Feed:
    """Keeps a sink up to date with the objects at one API path."""

    def __init__(
        self,
        client: KubeClient,
        source: FeedSource,
        *,
        clock: Clock,
        on_synced: Callable[[], None] = lambda: None,
        watch_seconds: int = _WATCH_SECONDS,
    ) -> None:
        self._client = client
        self._sink = source.sink
        self._query = source.query
        self._trim = source.trim or (lambda obj: obj)
        self._prepare = source.prepare
        self._is_optional = source.is_optional
        self._monotonic = clock.monotonic
        self._on_synced = on_synced
        self._watch_seconds = watch_seconds
        self.path = source.path
        self._heard = self._monotonic()
        self._flows = asyncio.Event()
        self._flows.set()
        self._reached = ""
        self._moved = asyncio.Event()
        self.synced = asyncio.Event()
        self._refused = 0
        """The status with which an optional kind was refused last, and logged; 0 if it is not."""

    @property
    def silent_seconds(self) -> float:
        """Seconds since the API server last sent anything; bookmarks come every minute or so."""
        return self._monotonic() - self._heard

    def pause(self) -> None:
        """Hold back all events until `resume`."""
        self._flows.clear()

    def resume(self) -> None:
        """Pass on the events that were held back, and all further ones."""
        self._flows.set()

    async def reach(self, version: str) -> None:
        """Wait until the sink knows all that was stored up to a resource version of its kind."""
        while not is_at_least(self._reached, version):
            self._moved.clear()
            await self._moved.wait()

    def _note(self, version: str) -> str:
        self._reached = version
        self._moved.set()
        return version

    async def run(self) -> None:
        """List and watch until cancelled; of an optional kind, until the cluster lacks it."""
        backoff = _BACKOFF_FIRST_SECONDS
        version: str | None = None
        while True:
            began = self._monotonic()
            try:
                if version is None:
                    version = self._note(await self._list())
                    self._refused = 0
                    self._on_synced()
                    self.synced.set()
                async for seen in self._watch(version):
                    version, backoff = self._note(seen), _BACKOFF_FIRST_SECONDS
            except KubeError as exc:
                if exc.is_missing and self._is_optional:
                    self._on_synced()
                    return
                if exc.is_gone:
                    version = None
                if self._is_optional and exc.status:
                    self._on_synced()
                self._log(exc)
            if self._monotonic() - began > _BACKOFF_MOST_SECONDS:
                backoff = _BACKOFF_FIRST_SECONDS  # the stream worked, without any event
            # After a normal end too: a server that ends every stream at once must not be flooded.
            await asyncio.sleep(random.uniform(backoff / 2, backoff))  # noqa: S311 - jitter
            backoff = min(backoff * 2, _BACKOFF_MOST_SECONDS)

    def _log(self, error: KubeError) -> None:
        """Log a failure; that an optional kind may not be read, once until it was listed."""
        is_refusal = self._is_optional and 400 <= error.status < 500 and not error.is_gone
        if not is_refusal or error.status != self._refused:
            logger.warning("watch interrupted", extra={"path": self.path, "error": str(error)})
        if is_refusal:
            self._refused = error.status

    async def _list(self) -> str:
        objects: list[Object] = []
        query = {**self._query, "limit": _PAGE_SIZE}
        while True:
            page = await self._client.request("GET", self.path, query=query)
            with _expected_shape(self.path):
                objects.extend(map(self._trim, page.get("items") or ()))
                version, token = (
                    page["metadata"]["resourceVersion"],
                    page["metadata"].get("continue"),
                )
            self._heard = self._monotonic()
            if not token:
                await self._prepare_all(objects)
                await self._flows.wait()
                self._sink.replace(objects)
                return str(version)
            query["continue"] = token

    async def _watch(self, version: str) -> AsyncIterator[str]:
        """Pass events on to the sink, yielding the resource version reached after each."""
        query = {
            **self._query,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._watch_seconds),
        }
        events = self._client.watch(
            self.path, query=query, idle_seconds=self._watch_seconds * _PATIENCE
        )
        async for event in events:
            with _expected_shape(self.path):
                kind, obj = event["type"], event["object"]
                if kind == "ERROR":
                    raise KubeError(str(obj.get("message")), status=int(obj.get("code", 0)))
                reached = str(obj["metadata"]["resourceVersion"])
            self._heard = self._monotonic()
            if kind in ("ADDED", "MODIFIED"):
                await self._prepare_all([obj])
            await self._flows.wait()
            if kind == "DELETED":
                self._sink.remove(obj)
            elif kind in ("ADDED", "MODIFIED"):
                self._sink.upsert(self._trim(obj))
            yield reached

    async def _prepare_all(self, objects: Iterable[Object]) -> None:
        if self._prepare is None:
            return
        for obj in objects:
            await self._prepare(obj)


def is_at_least(reached: str, version: str) -> bool:
    """Compare resource versions, which are numbers that grow; False where one is no number."""
    return reached.isdecimal() and version.isdecimal() and int(reached) >= int(version)


@contextmanager
def paused(feeds: Iterable[Feed]) -> Iterator[None]:
    """Hold back the events of these feeds while the body runs."""
    held = list(feeds)
    for feed in held:
        feed.pause()
    try:
        yield
    finally:
        for feed in held:
            feed.resume()


@contextmanager
def _expected_shape(path: str) -> Iterator[None]:
    """Treat an answer that is not one of Kubernetes like any other failure of the API server."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise KubeError(f"GET {path}: the answer is not one of Kubernetes ({exc!r})") from exc
