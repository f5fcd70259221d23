"""The way from release to binding, which only so many pods go at once.

kube-scheduler is kept busy, and no more: pods that only wait there get in the way of those being
bound, and lose their nominations. Whoever has its place and finds the way full is held back, and
called when there is room, first come first served. A gang goes whole.

Who is on the way for long keeps kube-scheduler busy no more: it lacks something else than leaf
cells, a volume perhaps. It goes on, and is in nobody's way.
"""

from collections.abc import Iterable

from policy.submission import GangKey, PodUid

_MOST_PODS = 96
# Gangs that have their places and follow next: more leases would only grow old.
_MOST_HELD_BACK = 16
# So long kube-scheduler needs at most for a way full of pods.
_LONG_SECONDS = 10.0


class Way:
    """Who is on the way, and who waits for it to be free."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, float] = {}
        """Who is on the way, and since when: the first come first."""
        self._held_back: dict[GangKey, None] = {}

    @property
    def is_crowded(self) -> bool:
        """Enough gangs wait for the way to be free."""
        return len(self._held_back) >= _MOST_HELD_BACK

    @property
    def _is_free(self) -> bool:
        return len(self._pods) < _MOST_PODS

    def lets_go(self, gang: GangKey, members: Iterable[PodUid]) -> bool:
        """Whether a gang may go, or go on: one of which somebody is on the way goes on whole."""
        may_go = self._is_free or any(uid in self._pods for uid in members)
        if may_go:
            self._held_back.pop(gang, None)
        else:
            self._held_back[gang] = None
        return may_go

    def call_off(self, gang: GangKey) -> None:
        """A gang has nobody to send, any more or yet."""
        self._held_back.pop(gang, None)

    def is_held_back(self, gang: GangKey) -> bool:
        """Whether a gang waits for the way to be free."""
        return gang in self._held_back

    def enter(self, uid: PodUid, *, now: float) -> None:
        """A pod is being released."""
        self._pods.setdefault(uid, now)

    def clear(self, now: float) -> None:
        """Do not wait for those that have been on the way for long."""
        while self._pods and now - next(iter(self._pods.values())) >= _LONG_SECONDS:
            del self._pods[next(iter(self._pods))]

    def leave(self, uid: PodUid) -> None:
        """A pod is bound, gone, or has lost its place."""
        self._pods.pop(uid, None)

    def call_next(self) -> list[GangKey]:
        """The gang that was held back first, if there is room for it now."""
        if not self._held_back or not self._is_free:
            return []
        gang = next(iter(self._held_back))
        del self._held_back[gang]
        return [gang]
