"""Victims: whole gangs that end so that another can start.

kube-scheduler ends the pods that we name on the node that we name, and no others. The rest of their
gangs is ended here, and so are all of them where kube-scheduler cannot help: it looks for victims
only on nodes that look full to it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from extender.cells.model import Preempt
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.outcomes.eviction import Ending
from extender.queue.reasons import preempted
from kube.read.pods import ManagedPod
from policy.errors import BackendError
from policy.submission import GangKey, PodUid

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class _ToEnd:
    """A pod that is to end, as long as that is wanted."""

    pod: ManagedPod
    why: str
    is_wanted: Callable[[], bool]


class Victims:
    """Finds the pods of victims, and ends them."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        ending: Ending,
        being_bound: Collection[PodUid],
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._end = ending.end
        self._being_bound = being_bound
        self._queue: asyncio.Queue[PodUid] = asyncio.Queue()
        self._ending: dict[PodUid, _ToEnd] = {}
        """Pods that are to end or were told to; of several who want it, the last one counts."""
        pods.on_end.append(self._forget)

    def _forget(self, pod: ManagedPod) -> None:
        self._ending.pop(pod.uid, None)

    def members(self, decision: Preempt) -> list[ManagedPod]:
        """Pods that still hold what the gang needs, all members of all its victims."""
        members = [
            uid for victim in decision.victims for uid in self._cluster.members.of_gang(victim)
        ]
        return [pod for uid in members if (pod := self._pods.get(uid)) is not None]

    def are_ending(self, gangs: Sequence[GangKey]) -> bool:
        """Whether a pod of these gangs was told to end, and has not yet."""
        members = [uid for gang in gangs for uid in self._cluster.members.of_gang(gang)]
        pods = [pod for uid in members if (pod := self._pods.get(uid)) is not None]
        return any(pod.is_deleting or pod.uid in self._ending for pod in pods)

    def end(self, decision: Preempt, pods: Sequence[ManagedPod]) -> None:
        """End these pods soon, gracefully; one that is not bound yet only loses its place.

        Whose turn has not come when the preemptor goes away is spared.
        """
        preemptor = decision.request.member
        for pod in pods:
            if self._is_bound(pod):
                why = preempted(pod.gang.key, by=decision.request).text
                self._put(_ToEnd(pod, why, lambda: not self._pods.has_ended(preemptor)))
            else:
                self._cluster.forget_member(pod.uid)

    def _is_bound(self, pod: ManagedPod) -> bool:
        """Whether a pod is bound, or may be before we hear of it."""
        known = self._cluster.members.get(pod.uid)
        is_known = known is not None and known.is_bound
        return pod.node is not None or is_known or pod.uid in self._being_bound

    def release(self, pods: Sequence[ManagedPod], why: str) -> None:
        """End bound pods soon, gracefully."""
        for pod in pods:
            self._put(_ToEnd(pod, why, lambda: True))

    def _put(self, one: _ToEnd) -> None:
        if one.pod.uid not in self._ending:
            self._queue.put_nowait(one.pod.uid)
        self._ending[one.pod.uid] = one

    def _is_wanted(self, uid: PodUid) -> bool:
        return uid in self._ending and self._ending[uid].is_wanted()

    async def run(self) -> NoReturn:
        """End what is to be ended, until cancelled; nobody is forgotten while the API is away."""
        while True:
            uid = await self._queue.get()
            if not self._is_wanted(uid):
                self._ending.pop(uid, None)
                continue
            one = self._ending[uid]
            try:
                await self._end(one.pod, why=one.why, is_wanted=partial(self._is_wanted, uid))
            except BackendError as exc:
                logger.warning("victim not ended", extra={"pod_uid": uid, "error": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
                self._queue.put_nowait(uid)
