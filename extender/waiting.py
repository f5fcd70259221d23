"""Pods that were refused: why, since when, and the answer they got.

kube-scheduler asks about a refused pod again and again, hundreds of times a second. While neither
the cluster nor the nodes offered have changed, the answer is the same, and is given again as it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policy.submission import GangKey, PodUid, VcName

_MOST: Final = 100_000
"""More pods than a cluster has; beyond, the oldest is forgotten, and asked about anew."""


@dataclass(slots=True, kw_only=True)
class Waiting:
    """One pod that was refused."""

    uid: PodUid
    namespace: str
    name: str
    gang: GangKey
    vc: VcName
    code: str
    reason: str
    change: str
    """What would have to change."""
    since: datetime
    offered: Sequence[str]
    version: int
    """Of the cluster, when it was refused."""
    answer: bytes
    asks_to_preempt: bool = False
    """Others would have to end for it, and kube-scheduler has not asked who, so far."""


class WaitingPods:
    """All pods that wait, by UID."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, Waiting] = {}

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: PodUid) -> Waiting | None:
        """The pod, if it waits."""
        return self._pods.get(uid)

    def repeat(self, uid: PodUid, offered: Sequence[str] | None, *, version: int) -> bytes | None:
        """The last answer, if nothing has changed since."""
        known = self._pods.get(uid)
        if known is None or known.version != version or known.offered != offered:
            return None
        return known.answer

    def put(self, waiting: Waiting) -> bool:
        """Note that a pod waits; True if it is for another reason than before."""
        before = self._pods.pop(waiting.uid, None)
        if len(self._pods) >= _MOST:
            del self._pods[next(iter(self._pods))]
        self._pods[waiting.uid] = waiting
        if before is None:
            return True
        if before.code == waiting.code:
            waiting.since = before.since
        return before.code != waiting.code

    def remove(self, uid: PodUid) -> None:
        """A pod does not wait any more."""
        self._pods.pop(uid, None)
