"""Watch streams: the changes of a collection since a revision, until a deadline.

With a selector, an object that starts to match is ADDED and one that stops matching is DELETED.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

from simulation.objects import status
from simulation.objects.fields import Object
from simulation.objects.resources import Resource
from simulation.objects.selectors import Selects, parse_number
from simulation.objects.status import ApiError
from simulation.objects.store import Change, Store

BOOKMARK_SECONDS = 10.0
_BOOKMARK_BEFORE_END_SECONDS = 2.0
_DEFAULT_TIMEOUT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The parameters of a watch; `since` is None to start with all current objects."""

    since: int | None
    bookmarks: bool
    timeout_seconds: float


def parse_options(query: Mapping[str, str]) -> WatchOptions:
    """Parse the parameters of a watch."""
    initial, match = query.get("sendInitialEvents"), query.get("resourceVersionMatch")
    if (initial, match) not in ((None, None), ("true", "NotOlderThan")):
        why = "resourceVersionMatch: Forbidden: sendInitialEvents=true goes with NotOlderThan"
        raise status.invalid("ListOptions", "", why)
    version = 0 if initial else parse_number(query, "resourceVersion")
    return WatchOptions(
        since=version or None,
        bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
        timeout_seconds=parse_number(query, "timeoutSeconds") or _DEFAULT_TIMEOUT_SECONDS,
    )


class Watch:
    """One watch of one collection."""

    def __init__(
        self, store: Store, resource: Resource, *, selects: Selects, options: WatchOptions
    ) -> None:
        self._store = store
        self._resource = resource
        self._selects = selects
        self._options = options
        self._closing = False

    def close(self) -> None:
        """End the stream at its next step."""
        self._closing = True

    async def events(self) -> AsyncGenerator[Object, None]:
        """Yield watch events until the deadline; end with an ERROR if the revision is expired."""
        since, bookmarks = self._options.since, self._options.bookmarks
        ends_at = time.monotonic() + self._options.timeout_seconds
        bookmark_at = _next_bookmark(ends_at)
        reached = self._store.revision if since is None else since
        for event in self._initial_events(reached) if since is None else ():
            yield event
        while not self._closing and time.monotonic() < ends_at:
            events, reached = self._events_since(reached), max(reached, self._store.revision)
            for event in events:
                yield event
                if event["type"] == "ERROR":
                    return
            if time.monotonic() >= bookmark_at:
                bookmark_at = _next_bookmark(ends_at)
                if bookmarks:
                    yield self._bookmark(reached)
            await self._wait(reached, until=bookmark_at)

    async def _wait(self, reached: int, *, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                await self._store.wait_for_change(reached)

    def _initial_events(self, reached: int) -> list[Object]:
        known = filter(self._selects, self._store.list(self._resource))
        events: list[Object] = [{"type": "ADDED", "object": obj} for obj in known]
        end = self._bookmark(reached)
        end["object"]["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        return [*events, end] if self._options.bookmarks else events

    def _events_since(self, reached: int) -> list[Object]:
        try:
            changes = self._store.changes(since=reached)
        except ApiError as error:
            return [{"type": "ERROR", "object": error.to_status()}]
        return list(filter(None, map(self._to_event, changes)))

    def _to_event(self, change: Change) -> Object | None:
        if change.resource is not self._resource:
            return None
        matched = change.before is not None and self._selects(change.before)
        matches = change.after is not None and self._selects(change.after)
        if matches:
            return {"type": "MODIFIED" if matched else "ADDED", "object": change.after}
        if not matched or change.before is None:
            return None
        # The last state that matched, at the revision of the change: clients resume from it.
        metadata = {**change.before["metadata"], "resourceVersion": str(change.revision)}
        return {"type": "DELETED", "object": {**change.before, "metadata": metadata}}

    def _bookmark(self, revision: int) -> Object:
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
        return {"type": "BOOKMARK", "object": {**kind, "metadata": metadata}}


def _next_bookmark(ends_at: float) -> float:
    """Return the time of the next bookmark: regularly, and shortly before the deadline."""
    now = time.monotonic()
    before_end = ends_at - _BOOKMARK_BEFORE_END_SECONDS
    return min(now + BOOKMARK_SECONDS, before_end if before_end > now else ends_at)
