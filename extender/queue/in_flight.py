"""Pods in flight: released and not bound yet. Their number is limited.

kube-scheduler gets enough pods to be busy and no more: further pods would delay those being bound,
and would lose their nominations. A gang with places is held back while the limit is reached, and
admitted whole once there is room, in the order of arrival.

A pod that stays in flight for long lacks something else than leaf cells, for example a volume. It
no longer counts against the limit.
"""

from collections.abc import Iterable

from policy.submission import GangKey, PodUid

_MOST_PODS = 96
# Gangs that have their places and follow next: further leases would only expire.
_MOST_HELD_BACK = 16
# kube-scheduler needs at most so long to bind as many pods as may be in flight.
_LONG_SECONDS = 10.0


class InFlightPods:
    """The pods in flight, and the gangs that are held back."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, float] = {}
        """Pods in flight and since when, the oldest first."""
        self._held_back: dict[GangKey, None] = {}

    @property
    def is_crowded(self) -> bool:
        """Whether enough gangs are held back."""
        return len(self._held_back) >= _MOST_HELD_BACK

    @property
    def _has_room(self) -> bool:
        return len(self._pods) < _MOST_PODS

    def admits(self, gang: GangKey, members: Iterable[PodUid]) -> bool:
        """Tell whether a gang may be released, or else hold it back.

        A gang of which a member is in flight may be released whole.
        """
        may_go = self._has_room or any(uid in self._pods for uid in members)
        if may_go:
            self._held_back.pop(gang, None)
        else:
            self._held_back[gang] = None
        return may_go

    def cancel(self, gang: GangKey) -> None:
        """Note that a gang has no pod to release."""
        self._held_back.pop(gang, None)

    def is_held_back(self, gang: GangKey) -> bool:
        """Tell whether a gang is held back."""
        return gang in self._held_back

    def enter(self, uid: PodUid, *, now: float) -> None:
        """Note that a pod is being released."""
        self._pods.setdefault(uid, now)

    def drop_slow(self, now: float) -> None:
        """Stop counting pods that have been in flight for long."""
        while self._pods and now - next(iter(self._pods.values())) >= _LONG_SECONDS:
            del self._pods[next(iter(self._pods))]

    def leave(self, uid: PodUid) -> None:
        """Note that a pod is bound, gone, or has lost its place."""
        self._pods.pop(uid, None)

    def next_gangs(self) -> list[GangKey]:
        """Return the gang that was held back first, if there is room now, and admit it."""
        if not self._held_back or not self._has_room:
            return []
        gang = next(iter(self._held_back))
        del self._held_back[gang]
        return [gang]
