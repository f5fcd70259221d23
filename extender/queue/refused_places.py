"""Places that cannot be used: kube-scheduler refuses the node, or the node is lost.

kube-scheduler's cache may be a moment behind, so a refusal counts only once it has lasted. A lost
node counts at once.
"""

from math import inf

from policy.submission import PodUid

_STANDS_SECONDS = 3.0


class RefusedPlaces:
    """Pods whose place cannot be used, and since when."""

    def __init__(self) -> None:
        self._since: dict[PodUid, float] = {}

    def refuse(self, uid: PodUid, *, now: float) -> None:
        """Note that kube-scheduler refused the place of a pod."""
        self._since.setdefault(uid, now)

    def lose_node(self, uid: PodUid) -> None:
        """Note that the node of a pod's place is lost."""
        self._since[uid] = -inf

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is bound, gone, or has no place any more."""
        self._since.pop(uid, None)

    def take_due(self, now: float) -> dict[PodUid, bool]:
        """Remove and return the pods that give up their places now, and whether by a refusal."""
        due = {uid: since for uid, since in self._since.items() if now - since >= _STANDS_SECONDS}
        for uid in due:
            del self._since[uid]
        return {uid: since > -inf for uid, since in due.items()}
