"""Victims: whole gangs that end so that another can start.

kube-scheduler ends the pods that we name on the node that we name, and no others. The rest of their
gangs is ended here, and so are all of them where kube-scheduler cannot help: it looks for victims
only on nodes that look full to it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, NoReturn, Protocol

from extender.cells.model import OPPORTUNISTIC, Preempt
from extender.cluster import Cluster
from extender.events import Announcer
from extender.leading import Leading
from extender.pods import PodSink
from extender.queue.wording import preemption_words
from kube.binding import PodRef
from kube.pods import ManagedPod
from policy.errors import BackendError
from policy.submission import GangKey, PodUid

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0


class EndPods(Protocol):
    """What ending a victim needs of Kubernetes."""

    async def end(self, pod: PodRef, *, why: str) -> bool:
        """End the pod gracefully; BackendError if that failed."""


class Victims:
    """Finds the pods of victims, and ends them."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        ender: EndPods,
        leading: Leading,
        announcer: Announcer,
        on_end: Callable[[], None],
        being_bound: Collection[PodUid],
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._ender = ender
        self._leading = leading
        self._announcer = announcer
        self._on_end = on_end
        self._being_bound = being_bound
        self._queue: asyncio.Queue[tuple[ManagedPod, str]] = asyncio.Queue()
        self._ending: set[PodUid] = set()
        pods.on_end.append(lambda pod: self._ending.discard(pod.uid))

    def members(self, decision: Preempt) -> list[ManagedPod]:
        """Pods that still hold what the gang needs, all members of all its victims."""
        members = [
            uid for victim in decision.victims for uid in self._cluster.members.of_gang(victim)
        ]
        return [pod for uid in members if (pod := self._pods.get(uid)) is not None]

    def are_borrowers(self, decision: Preempt) -> bool:
        """Whether all victims are opportunistic: an owner wants its cells back."""
        members = self._cluster.members
        found = [members.get(uid) for gang in decision.victims for uid in members.of_gang(gang)]
        return all(one.request.priority == OPPORTUNISTIC for one in found if one is not None)

    def are_ending(self, gangs: Sequence[GangKey]) -> bool:
        """Whether a pod of these gangs was told to end, and has not yet."""
        members = [uid for gang in gangs for uid in self._cluster.members.of_gang(gang)]
        pods = [pod for uid in members if (pod := self._pods.get(uid)) is not None]
        return any(pod.is_deleting or pod.uid in self._ending for pod in pods)

    def end(self, decision: Preempt, pods: Sequence[ManagedPod]) -> None:
        """End these pods soon, gracefully; one that is not bound yet only loses its place."""
        for pod in pods:
            if self._is_bound(pod):
                self.release([pod], preemption_words(decision.request, pod.gang.key))
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
            if not pod.is_deleting and pod.uid not in self._ending:
                self._ending.add(pod.uid)
                self._queue.put_nowait((pod, why))

    async def run(self) -> NoReturn:
        """End what is to be ended, until cancelled; nobody is forgotten while the API is away."""
        while True:
            pod, why = await self._queue.get()
            if self._pods.get(pod.uid) is None:
                continue
            reference = PodRef(
                namespace=pod.namespace, name=pod.name, uid=pod.uid, resource_version=None
            )
            try:
                self._leading.check()
                if await self._ender.end(reference, why=why):
                    self._announcer.preempted(pod, why=why)
                    self._on_end()
                    logger.info("victim ended", extra={"pod_uid": pod.uid, "why": why})
            except BackendError as exc:
                logger.warning("victim not ended", extra={"pod_uid": pod.uid, "error": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
                self._queue.put_nowait((pod, why))
