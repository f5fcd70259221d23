"""Ends the pods of victims, for the planner, the verbs and the background work alike.

- A pod is ended once, even if several parts of the extender ask for it.
- A pod is spared if it need not end any more, even between the two writes that end it: for the
  planner when the gang no longer preempts it, for the verbs when the preemptor is gone.
- Before a victim of a preemption ends, its owner gets an Event, and the pod runs on for as long as
  the admins' grace says. A new leader gives the notice again.
- A gang ends whole: once a pod of it was ended, its other pods that were to end do end, too, even
  if the preemptor goes away. Half a gang is of no use to its owner. Pods that are created later are
  no part of it.
- An attempt that fails is repeated with growing delays, for as long as the pod must end.
- Where all pods of a workload must end and its kind has a gentle way, that is used
  (`extender.outcomes.reclaims`).
- The owner gets one Event. A pod that its owner or kube-scheduler ended first gets none. A pod that
  the leader before this one ended gets the same Event again, under the same name, because that
  leader may have died before it wrote it; it is not counted again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn, Protocol

from extender.feeds.pod_feed import PodSink
from extender.outcomes.outcomes import Outcomes
from extender.outcomes.reclaims import Reclaims
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError
from policy.submission import GangKey, PodUid
from service.tasks import wait_up_to

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5
_AT_ONCE: Final = 16
"""Pods that are written to at the same time; each takes three requests."""

IsWanted = Callable[[], bool]


class EndPods(Protocol):
    """What ending pods needs of Kubernetes."""

    async def end(self, pod: PodRef, *, why: str, is_wanted: IsWanted) -> Ended:
        """End the pod gracefully; BackendError if it was spared, or that failed."""


@dataclass(slots=True, eq=False)
class _Eviction:
    """A pod that is to end, or that is terminating."""

    pod: ManagedPod
    wanted: dict[str, IsWanted] = field(default_factory=dict)
    """By reason: whether the pod is still to end for it."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the pod is terminating, spared or gone."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the pod is gone."""
    is_terminating: bool = False
    note: str = ""
    """What its owner is told beside the reason."""
    grace: float = 0.0
    """Seconds between the notice to its owner and its end."""

    def reason(self) -> str | None:
        """The first reason for which it is still to end."""
        return next((why for why, is_wanted in self.wanted.items() if is_wanted()), None)


class Evictions:
    """Ends pods in the background."""

    def __init__(
        self,
        ender: EndPods,
        *,
        pods: PodSink,
        outcomes: Outcomes,
        reclaims: Reclaims,
        note_for: Callable[[ManagedPod], str] = lambda _: "",
        grace: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`note_for` returns what the owner of a pod is told beside the reason.

        `grace` returns for how many seconds a victim runs on after the notice.
        """
        self._ender = ender
        self._reclaims = reclaims
        self._note_for = note_for
        self._grace = grace
        self._outcomes = outcomes
        self.on_reclaimed: list[Callable[[ManagedPod], None]] = []
        """Called with each pod that was ended, here or by the leader before."""
        self._evictions: dict[PodUid, _Eviction] = {}
        self._begun: dict[GangKey, frozenset[PodUid]] = {}
        """Gangs of which a pod was ended here, while others are to end: the pods that they had."""
        self._pods = pods
        self._new: asyncio.Queue[_Eviction] = asyncio.Queue()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        pods.on_end.append(self._forget)
        pods.helpers.on_end.append(self._forget)

    def __contains__(self, uid: PodUid) -> bool:
        """Whether a pod is to end, or is terminating."""
        return uid in self._evictions

    def start(
        self, pod: ManagedPod, *, why: str, is_wanted: IsWanted, gives_notice: bool = False
    ) -> None:
        """End a pod soon, as long as that is wanted; a victim of a preemption gets a notice."""
        eviction = self._evictions.get(pod.uid)
        if eviction is None:
            eviction = self._evictions[pod.uid] = _Eviction(pod)
            eviction.note = self._note_for(pod)
            eviction.grace = self._grace() if gives_notice else 0.0
            self._new.put_nowait(eviction)
        eviction.wanted[why] = is_wanted

    async def end(self, pod: ManagedPod, *, why: str, is_wanted: IsWanted) -> None:
        """End a victim, and return once it is terminating; BackendError if it is spared or gone."""
        self.start(pod, why=why, is_wanted=is_wanted, gives_notice=True)
        eviction = self._evictions[pod.uid]
        await eviction.over.wait()
        if not eviction.is_terminating:
            raise BackendError(f"pod {pod.display_name} is gone or need not end any more")

    def _forget(self, pod: ManagedPod) -> None:
        eviction = self._evictions.pop(pod.uid, None)
        if eviction is not None:
            eviction.gone.set()
        if not any(one.pod.gang.key == pod.gang.key for one in self._evictions.values()):
            self._begun.pop(pod.gang.key, None)

    async def run(self) -> NoReturn:
        """Execute evictions until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._execute(await self._new.get()))

    async def _execute(self, eviction: _Eviction) -> None:
        pause = _FIRST_PAUSE_SECONDS
        await self._give_notice(eviction)
        while (why := self._reason(eviction)) is not None:
            eviction.is_terminating = await self._attempt(eviction, why)
            if eviction.is_terminating:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if not eviction.is_terminating and self._is_current(eviction):
            del self._evictions[eviction.pod.uid]
        eviction.over.set()

    async def _give_notice(self, eviction: _Eviction) -> None:
        """Tell the owner of a victim, and let it run on for the grace, unless it is spared."""
        why = self._reason(eviction)
        if not eviction.grace or why is None:
            return
        self._outcomes.pod_warned(eviction.pod, why=why + eviction.note, seconds=eviction.grace)
        with suppress(TimeoutError):
            async with asyncio.timeout(eviction.grace):
                while self._runs_on(eviction):
                    await wait_up_to(_LOOK_SECONDS, eviction.gone)

    def _runs_on(self, eviction: _Eviction) -> bool:
        """Whether a pod that was warned still is to end, and does not end yet."""
        pod = self._pods.get(eviction.pod.uid)
        return self._reason(eviction) is not None and pod is not None and not pod.is_deleting

    def _is_current(self, eviction: _Eviction) -> bool:
        return self._evictions.get(eviction.pod.uid) is eviction

    def _reason(self, eviction: _Eviction) -> str | None:
        if not self._is_current(eviction):
            return None
        has_begun = self._has_begun(eviction.pod)
        return eviction.reason() or (next(iter(eviction.wanted)) if has_begun else None)

    def _is_wanted(self, eviction: _Eviction, why: str) -> bool:
        has_begun = self._has_begun(eviction.pod)
        return self._is_current(eviction) and (has_begun or eviction.wanted[why]())

    def _has_begun(self, pod: ManagedPod) -> bool:
        """Whether another pod was ended of the gang that this one belonged to then."""
        return pod.uid in self._begun.get(pod.gang.key, ())

    def _begin(self, pod: ManagedPod) -> None:
        """A pod was ended, so the others that its gang has now must end, too."""
        if not self._has_begun(pod):
            gang = pod.gang.key
            members = (*self._pods.of_gang(gang), *self._pods.helpers.of_gang(gang))
            there = {pod.uid, *(one.uid for one in members)}
            self._begun[gang] = self._begun.get(gang, frozenset()) | there

    async def _end_gently(self, eviction: _Eviction, why: str) -> bool:
        """End a pod with its whole workload, if all its pods are to end."""
        is_ending = await self._reclaims.end(
            eviction.pod,
            why=why + eviction.note,
            victims=self._evictions,
            is_wanted=partial(self._is_wanted, eviction, why),
        )
        if is_ending:
            self._outcomes.pod_suspended(eviction.pod, why=why + eviction.note)
            self._note_reclaimed(eviction.pod)
        return is_ending

    async def _attempt(self, eviction: _Eviction, why: str) -> bool:
        """End a pod in the gentlest way that there is; False if the attempt failed."""
        try:
            if await self._end_gently(eviction, why):
                return True
        except BackendError as exc:
            logger.warning("workload not suspended yet", extra={"error": str(exc)})
            return False
        async with self._slots:
            return await self._try(eviction, why)

    async def _try(self, eviction: _Eviction, why: str) -> bool:
        pod = eviction.pod
        reference = PodRef.of(pod)
        is_wanted = partial(self._is_wanted, eviction, why)
        try:
            ended = await self._ender.end(reference, why=why, is_wanted=is_wanted)
        except BackendError as exc:
            if is_wanted():
                logger.warning("pod not ended", extra={"pod_uid": pod.uid, "error": str(exc)})
            return False
        self._outcomes.pod_ended(pod, ended, why=why + eviction.note)
        if ended is not Ended.BY_OTHERS:
            self._begin(pod)
            self._note_reclaimed(pod)
        return True

    def _note_reclaimed(self, pod: ManagedPod) -> None:
        for notify in self.on_reclaimed:
            notify(pod)
