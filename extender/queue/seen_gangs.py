"""The gangs whose pods are seen, and which of them changed since they were looked at last.

A pod is of one gang at a time. A gang of which the last pod is gone stays until it is forgotten:
there may be something to take back first.
"""

from collections.abc import Collection, Iterator
from math import inf, nextafter

from extender.queue.model import QueuedPod
from extender.queue.queued_gang import QueuedGang
from policy.submission import GangKey, PodUid


class SeenGangs:
    """Gangs by name and by pod."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, QueuedGang] = {}
        self._gang_of: dict[PodUid, GangKey] = {}
        self._changed: set[GangKey] = set()
        self._youngest = 0.0
        """When the last pod was created, of all that were ever seen."""

    def __getitem__(self, key: GangKey) -> QueuedGang:
        return self._gangs[key]

    def __iter__(self) -> Iterator[QueuedGang]:
        return iter(self._gangs.values())

    @property
    def pods(self) -> Collection[PodUid]:
        """All pods, those seen first to begin with."""
        return self._gang_of.keys()

    def find(self, key: GangKey) -> QueuedGang | None:
        """Return a gang that has, or just had, pods."""
        return self._gangs.get(key)

    def find_of(self, uid: PodUid) -> QueuedGang | None:
        """Return the gang that a pod is of."""
        key = self._gang_of.get(uid)
        return None if key is None else self._gangs[key]

    def put(self, pod: QueuedPod) -> bool:
        """Note how a pod is now; tell whether there is a change to one that stays."""
        key = pod.request.gang
        if self._gang_of.get(pod.uid, key) != key or pod.is_ending:
            self.drop(pod.uid)
        if pod.is_ending:
            return False
        gang = self._gangs.setdefault(key, QueuedGang(key))
        if gang.pods.get(pod.uid) == pod:
            return False
        gang.put(pod)
        self._youngest = max(self._youngest, pod.created)
        self._gang_of[pod.uid] = key
        self.note_change(key)
        return True

    def drop(self, uid: PodUid) -> None:
        """A pod, known or not, is gone."""
        key = self._gang_of.pop(uid, None)
        if key is not None:
            self._gangs[key].remove(uid)
            self.note_change(key)

    def forget(self, key: GangKey) -> None:
        """Nothing is left to be done for a gang without pods."""
        del self._gangs[key]
        self._changed.discard(key)

    def note_change(self, key: GangKey) -> None:
        """Something happened to a gang, if it is one of these: it is to be looked at."""
        self._changed.add(key)

    def take_changed(self) -> list[GangKey]:
        """Return what is to be looked at, which is done with that; by name."""
        changed, self._changed = sorted(self._changed), set()
        return changed

    def send_back(self, gang: QueuedGang) -> None:
        """Let a gang wait behind all its equals that were seen so far."""
        gang.waits_since = nextafter(self._youngest, inf)
