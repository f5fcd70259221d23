"""The gangs whose pods the planner has seen, and which of them have changed since the last step.

A pod belongs to one gang at a time. A gang whose last pod is gone stays until it is forgotten: its
places may have to be withdrawn first.
"""

from collections.abc import Collection, Iterator
from math import inf, nextafter

from extender.queue.model import LeafCounts, QueuedPod
from extender.queue.queued_gang import QueuedGang
from policy.submission import GangKey, PodUid

_RENEW_SECONDS = 5.0


class SeenGangs:
    """Gangs by name and by pod."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, QueuedGang] = {}
        self._gang_of: dict[PodUid, GangKey] = {}
        self._changed: set[GangKey] = set()
        self._finished: dict[GangKey, dict[str, LeafCounts]] = {}
        self.unfinished: dict[GangKey, None] = {}
        """Gangs of which only some members run, and gangs whose victims are ending."""
        self._renew_at = 0.0
        self._youngest = 0.0
        """When the youngest of all pods that were seen was created."""

    def __getitem__(self, key: GangKey) -> QueuedGang:
        return self._gangs[key]

    def __iter__(self) -> Iterator[QueuedGang]:
        return iter(self._gangs.values())

    @property
    def pods(self) -> Collection[PodUid]:
        """All pods, in the order in which they were first seen."""
        return self._gang_of.keys()

    def find(self, key: GangKey) -> QueuedGang | None:
        """Return a gang, if it is known."""
        return self._gangs.get(key)

    def find_of(self, uid: PodUid) -> QueuedGang | None:
        """Return the gang of a pod."""
        key = self._gang_of.get(uid)
        return None if key is None else self._gangs[key]

    def put(self, pod: QueuedPod) -> bool:
        """Note the state of a pod; return False if it has not changed or is ending."""
        key = pod.request.gang
        if self._gang_of.get(pod.uid, key) != key or pod.is_ending:
            self.drop(pod.uid)
        if pod.is_ending:
            return False
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = QueuedGang(key, finished=self._finished.get(key, {}))
        if gang.pods.get(pod.uid) == pod:
            return False
        gang.put(pod)
        self._youngest = max(self._youngest, pod.created)
        self._gang_of[pod.uid] = key
        self.note_change(key)
        return True

    def drop(self, uid: PodUid) -> None:
        """Remove a pod, if it is known."""
        key = self._gang_of.pop(uid, None)
        if key is not None:
            self._gangs[key].remove(uid)
            self.note_change(key)

    def note_finished(self, key: GangKey, workload: str, finished: LeafCounts) -> None:
        """Note which members of a gang have succeeded, of one workload."""
        counts = {**self._finished.get(key, {}), workload: finished}
        counts = {owner: members for owner, members in counts.items() if members}
        if counts:
            self._finished[key] = counts
        else:
            self._finished.pop(key, None)
        gang = self._gangs.get(key)
        if gang is not None:
            gang.finished = counts
            self.note_change(key)

    def forget(self, key: GangKey) -> None:
        """Forget a gang without pods."""
        del self._gangs[key]
        self.unfinished.pop(key, None)
        self._changed.discard(key)

    def note_unfinished(self, gang: QueuedGang, *, now: float) -> None:
        """Note whether a gang is unfinished."""
        if gang.is_unfinished(now):
            self.unfinished[gang.key] = None
        else:
            self.unfinished.pop(gang.key, None)

    def is_renewal_due(self, now: float) -> bool:
        """Tell whether leases of unfinished gangs are to be renewed now, and note that they are.

        A part of a gang is of no use, and what slow victims leave must still be reserved when they
        have ended.
        """
        if now < self._renew_at:
            return False
        self._renew_at = now + _RENEW_SECONDS
        for key in list(self.unfinished):
            self.note_unfinished(self._gangs[key], now=now)
        return True

    def note_change(self, key: GangKey) -> None:
        """Mark a gang as changed."""
        self._changed.add(key)

    def take_changed(self) -> list[GangKey]:
        """Return the changed gangs by key, and clear the marks."""
        changed, self._changed = sorted(self._changed), set()
        return changed

    def send_back(self, gang: QueuedGang) -> None:
        """Rank a gang behind all gangs of the same priority that were seen so far."""
        gang.waits_since = nextafter(self._youngest, inf)
