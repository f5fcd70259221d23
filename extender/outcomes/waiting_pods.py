"""Pods that were refused: why and since when; and refusals that are given again as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policy.submission import GangKey, NodeName, PodUid, VcName
from service.memory import BoundedMap

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
    offered: Sequence[NodeName]
    asked: float = 0.0
    """When kube-scheduler asked last, by the clock that measures."""
    version: int = -1
    """Of the cluster, when it was looked at last."""
    victims: tuple[GangKey, ...] = ()
    """Gangs that end, or would have to, before it can start."""
    asks_to_preempt: bool = False
    """Others would have to end for it, and kube-scheduler has not asked who, so far."""


class WaitingPods:
    """All pods that wait, by UID."""

    def __init__(self) -> None:
        self._pods: BoundedMap[PodUid, Waiting] = BoundedMap(_MOST)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: PodUid) -> Waiting | None:
        """The pod, if it waits."""
        return self._pods.get(uid)

    def put(self, waiting: Waiting) -> bool:
        """Note that a pod waits; True if it is for another reason than before."""
        before = self._pods.get(waiting.uid)
        self._pods[waiting.uid] = waiting
        if before is None:
            return True
        if before.code == waiting.code:
            waiting.since = before.since
        return before.code != waiting.code

    def remove(self, uid: PodUid) -> None:
        """A pod does not wait any more."""
        self._pods.pop(uid, None)


class Refusals:
    """Questions that were answered with a refusal, word for word.

    kube-scheduler asks about a refused pod again and again, hundreds of times a second. While the
    cluster has not changed, the same question has the same answer, and is not even read.
    """

    def __init__(self) -> None:
        self._version = 0
        self._answers: BoundedMap[int, bytes] = BoundedMap(_MOST)

    def repeat(self, question: bytes, *, version: int) -> bytes | None:
        """The answer, if the same was asked since the cluster changed last."""
        # Python's own hash, keyed anew in every process: nobody can aim at a collision.
        return self._answers.get(hash(question)) if version == self._version else None

    def put(self, question: bytes, answer: bytes, *, version: int) -> None:
        """Remember an answer for as long as the cluster does not change."""
        if version != self._version:
            self._version = version
            self._answers.clear()
        self._answers[hash(question)] = answer
