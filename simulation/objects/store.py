"""All objects in memory, with one revision counter and a bounded history of changes.

Every write has its own revision and adds one change to the history, so revisions in the history
have no gaps. A watch resumes by position, and an older state of a collection is the current state
with later changes undone. A revision that has left the history is expired (410).

Writes are synchronous, so that no write is incomplete at an `await`.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from simulation.objects import status
from simulation.objects.fields import Key, Object, key_of, version_of
from simulation.objects.resources import Resource
from simulation.objects.status import ApiError


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write: a created object has no `before`, a removed object no `after`."""

    revision: int
    resource: Resource
    before: Object | None
    after: Object | None


class Store:
    """The objects of the simulated cluster. Returned objects are shared: do not change them."""

    def __init__(self, *, history: int = 2000) -> None:
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._history: deque[Change] = deque(maxlen=history)
        self._changed = asyncio.Event()
        # Not 1: in a real cluster the first revisions have expired before a client connects.
        self.revision = 1000

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Return the object at a key, if it exists."""
        return self._objects.get(resource, {}).get(key)

    def get(self, resource: Resource, key: Key) -> Object:
        """Return the object at a key; 404 if it does not exist."""
        obj = self.find(resource, key)
        if obj is None:
            raise status.not_found(resource.qualified, key[1])
        return obj

    def list(self, resource: Resource) -> Sequence[Object]:
        """Return all objects of a kind, ordered by namespace and name."""
        return [obj for _, obj in sorted(self._objects.get(resource, {}).items())]

    def snapshot(self, resource: Resource, *, revision: int) -> Sequence[Object]:
        """Return all objects of a kind at a revision; 410 if it has expired."""
        objects = dict(self._objects.get(resource, {}))
        for change in reversed(self.changes(since=revision)):
            if change.resource is resource:
                _undo(objects, change)
        return [obj for _, obj in sorted(objects.items())]

    def create(self, resource: Resource, obj: Object) -> Object:
        """Store a new object; 409 if its name is in use."""
        key = key_of(obj)
        if self.find(resource, key) is not None:
            raise status.already_exists(resource.qualified, key[1])
        return self._write(resource, obj)

    def update(self, resource: Resource, obj: Object, *, expected: str) -> Object:
        """Replace an object that has the expected version; 409 if it has another one.

        An update without a change creates no new version, as in a real API server.
        """
        key = key_of(obj)
        current = self.get(resource, key)
        if version_of(current) != expected:
            raise status.conflict(resource.qualified, key[1])
        if _complete(resource, obj, version=expected) == current:
            return current
        return self._write(resource, obj)

    def remove(self, resource: Resource, key: Key) -> Object:
        """Remove an object and return its last state; 404 if it does not exist."""
        before = self.get(resource, key)
        del self._objects[resource][key]
        self._publish(resource, before=before, after=None)
        return before

    def changes(self, *, since: int) -> Sequence[Change]:
        """Return the changes after a revision, oldest first; 410 if it has expired."""
        forgotten = self.revision - len(self._history)
        if since < forgotten:
            message = f"too old resource version: {since} ({self.revision})"
            raise ApiError(410, "Expired", message)
        return list(islice(self._history, since - forgotten, None))

    async def wait_for_change(self, revision: int) -> None:
        """Wait for a change after this revision, or for `wake_all`."""
        if self.revision <= revision:
            await self._changed.wait()

    def wake_all(self) -> None:
        """Wake all callers of `wait_for_change`, for example when the server closes."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _write(self, resource: Resource, obj: Object) -> Object:
        key = key_of(obj)
        kind = self._objects.setdefault(resource, {})
        before = kind.get(key)
        after = _complete(resource, obj, version=str(self.revision + 1))
        kind[key] = after
        self._publish(resource, before=before, after=after)
        return after

    def _publish(self, resource: Resource, *, before: Object | None, after: Object | None) -> None:
        self.revision += 1
        self._history.append(
            Change(revision=self.revision, resource=resource, before=before, after=after)
        )
        self.wake_all()


def _complete(resource: Resource, obj: Object, *, version: str) -> Object:
    """Return the object as it is stored, with the kind of its collection."""
    metadata = {**obj["metadata"], "resourceVersion": version}
    kind = {"kind": resource.kind, "apiVersion": resource.api_version}
    return {**obj, **kind, "metadata": metadata}


def _undo(objects: dict[Key, Object], change: Change) -> None:
    if change.before is not None:
        objects[key_of(change.before)] = change.before
    elif change.after is not None:
        del objects[key_of(change.after)]
