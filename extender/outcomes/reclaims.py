"""Gentle ends: the workload of victims is suspended and resumed, instead of ending pod by pod.

A Job counts each pod that ends as a failure, and waits longer and longer before it creates another.
A Job that is suspended does neither. So where all pods of a workload that have or await a place are
victims, the workload is suspended: its controller ends the pods. Once they are gone, the workload
is resumed, and its new pods wait behind the gate with the age that the workload had before.

    running ──suspend, with the mark──▶ pods end ──they are gone──▶ resume ──▶ new pods wait

The mark on the workload is the only memory: a leader that takes over resumes what is marked.
"""

import asyncio
import logging
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

from extender.feeds.pod_feed import PodSink
from extender.metrics import ExtenderMetrics
from extender.outcomes.outcomes import Outcomes
from kube.api.client import KubeError
from kube.api.suspender import CannotSuspendError, EndsWith, MarkedWorkload, Resumption
from kube.read.managed_pod import ManagedPod
from kube.read.suspension import SUSPENDABLE, ReclaimMark
from kube.read.workloads import Workload, WorkloadKey
from policy.errors import BackendError
from policy.submission import PodUid
from service.clock import Clock
from service.memory import ExpiringMap
from service.tasks import wait_up_to
from state.log.records import new_key

logger = logging.getLogger(__name__)

_REFUSED_SECONDS: Final = 30.0
_FORBIDDEN_SECONDS: Final = 600.0
_REMEMBERED: Final = 10_000
_CONTROLLER_SECONDS: Final = 15.0
"""How long a controller may take to begin to end the pods; then Cellgate ends them."""
_GONE_SECONDS: Final = 600.0
"""How long pods may take to go; then the workload is resumed beside them."""
_LOOK_SECONDS: Final = 0.5
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500
_LIST_AGAIN_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 5.0

IsWanted = Callable[[], bool]


class SuspendWorkloads(Protocol):
    """What a gentle end needs of Kubernetes."""

    async def suspend(
        self,
        workload: Workload,
        *,
        namespace: str,
        mark: ReclaimMark,
        ends: EndsWith,
        is_wanted: IsWanted,
    ) -> ReclaimMark:
        """Suspend a workload with a mark; CannotSuspendError, KubeError."""

    async def resume(self, workload: Workload, *, namespace: str) -> Resumption:
        """Resume a workload that has the mark."""

    async def marked(self, group: str, kind: str) -> list[MarkedWorkload]:
        """Return all workloads of a kind with a mark; KubeError."""


@dataclass(slots=True, eq=False)
class _Open:
    """A workload that is suspended and not resumed yet."""

    workload: Workload
    namespace: str
    until: float
    """When it is resumed at the latest, on the monotonic clock."""
    next_try: float = 0.0
    pause: float = _LOOK_SECONDS

    @property
    def key(self) -> WorkloadKey:
        """What tells it apart."""
        return WorkloadKey(self.namespace, self.workload.mark)


class Reclaims:
    """Suspends the workloads of victims, and resumes them."""

    def __init__(
        self,
        suspender: SuspendWorkloads | None,
        *,
        pods: PodSink,
        has_place: Callable[[PodUid], bool],
        outcomes: Outcomes,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        """Without `suspender`, all pods are ended one by one."""
        self._suspender = suspender
        self._pods = pods
        self._has_place = has_place
        self._outcomes = outcomes
        self._metrics = metrics
        self._clock = clock
        self._under_way: dict[WorkloadKey, asyncio.Future[bool | None]] = {}
        """Attempts by workload; the result is None if the attempt failed."""
        self._open: dict[WorkloadKey, _Open] = {}
        self._refused: ExpiringMap[WorkloadKey, None] = ExpiringMap(
            _REMEMBERED, seconds=_REFUSED_SECONDS, monotonic=clock.monotonic
        )
        self._failed: ExpiringMap[WorkloadKey, None] = ExpiringMap(
            _REMEMBERED, seconds=_REFUSED_SECONDS, monotonic=clock.monotonic
        )
        """Workloads for which one attempt failed: after the next one, their pods are evicted."""
        self._forbidden: ExpiringMap[tuple[str, str], None] = ExpiringMap(
            len(SUSPENDABLE), seconds=_FORBIDDEN_SECONDS, monotonic=clock.monotonic
        )
        self._news = asyncio.Event()
        self._awaited: dict[PodUid, asyncio.Event] = {}
        """Pods that their controller is to end; the event is set once it does."""
        pods.on_appear.append(self._see)
        pods.on_end.append(self._forget)

    # -- suspending

    def may_suspend(self, pod: ManagedPod) -> bool:
        """Whether the workload of a pod has a kind that Cellgate may suspend, as far as known."""
        workload, key = pod.workload, pod.workload_key
        if self._suspender is None or workload is None or key is None or key in self._refused:
            return False
        kind = workload.group, workload.kind
        return kind in SUSPENDABLE and kind not in self._forbidden

    async def end(
        self, pod: ManagedPod, *, why: str, victims: Container[PodUid], is_wanted: IsWanted
    ) -> bool:
        """End a pod with all others of its workload; False if it must be ended by itself.

        BackendError if the API server failed and another attempt may succeed.
        """
        key = pod.workload_key
        if key is None or not self.may_suspend(pod) or self._ends_already(pod):
            return False
        under_way = self._under_way.get(key)
        if under_way is not None:
            is_suspended = await under_way
            if is_suspended is None:
                raise BackendError("the attempt for another pod of the workload failed")
        elif self._are_all(key, victims):
            ends = self._ends_with(key, victims)
            is_suspended = await self._suspend_once(pod, why=why, ends=ends, is_wanted=is_wanted)
        else:
            is_suspended = key in self._open
        return is_suspended and await self._is_ending(pod)

    async def _suspend_once(
        self, pod: ManagedPod, *, why: str, ends: EndsWith, is_wanted: IsWanted
    ) -> bool:
        """Suspend a pod's workload; its other pods that are to end wait for the result."""
        workload, key = pod.workload, pod.workload_key
        assert workload is not None, "may_suspend was asked"
        assert key is not None, "it has a workload"
        done = self._under_way[key] = asyncio.get_running_loop().create_future()
        is_suspended: bool | None = None
        try:
            is_suspended = await self._suspend(
                pod, workload, why=why, ends=ends, is_wanted=is_wanted
            )
        finally:
            del self._under_way[key]
            done.set_result(is_suspended)
        return is_suspended

    def _ends_already(self, pod: ManagedPod) -> bool:
        """Whether a pod ends, and not because Cellgate suspended its workload."""
        now = self._pods.get(pod.uid)
        ends = now is None or now.is_deleting
        return ends and pod.workload_key not in self._open

    def _are_all(self, workload: WorkloadKey, victims: Container[PodUid]) -> bool:
        """Whether every pod of a workload that has a place is a victim, or ends already."""
        return all(
            pod.uid in victims
            or pod.is_deleting
            or (pod.node is None and not self._has_place(pod.uid))
            for pod in self._pods.workloads.of(workload)
        )

    def _ends_with(self, workload: WorkloadKey, victims: Container[PodUid]) -> EndsWith:
        """Return which pods may end with a workload; `_are_all` judges those with leaf cells."""
        own = self._pods.workloads.of(workload)

        def includes(uid: PodUid, is_decided: bool) -> bool:
            pod = self._pods.get(uid)
            if pod is None:
                # It has ended, or it is new and waits behind the gate; otherwise it is not managed.
                return is_decided or self._pods.has_ended(uid)
            return uid in victims or not pod.is_helper or pod.node is None

        controllers = {pod.controller.uid for pod in own if pod.controller is not None}
        return EndsWith(includes=includes, controllers=controllers)

    async def _suspend(
        self,
        pod: ManagedPod,
        workload: Workload,
        *,
        why: str,
        ends: EndsWith,
        is_wanted: IsWanted,
    ) -> bool:
        assert self._suspender is not None, "may_suspend was asked"
        workloads, key = self._pods.workloads, WorkloadKey(pod.namespace, workload.mark)
        own = [one for one in workloads.of(key) if one.charged_user == pod.charged_user]
        mark = ReclaimMark(
            why=why,
            gang=str(pod.gang.key),
            decision=str(new_key()),
            at=self._clock.now().timestamp(),
            first_asked=min(map(workloads.first_asked, [pod, *own])),
        )
        try:
            written = await self._suspender.suspend(
                workload, namespace=pod.namespace, mark=mark, ends=ends, is_wanted=is_wanted
            )
        except CannotSuspendError as exc:
            if is_wanted():
                self._refuse(key, "refused", str(exc))
            return False
        except KubeError as exc:
            self._note_failure(workload, pod.namespace, exc)
            return False
        asked = written.first_asked
        self._pods.note_first_asked(key, asked, submitter=pod.charged_user)
        self._watch(workload, pod.namespace)
        self._metrics.suspensions.labels("suspended").inc()
        self._outcomes.ends.suspended(pod, workload, mark=written)
        return True

    def _note_failure(self, workload: Workload, namespace: str, error: KubeError) -> None:
        """The API server refused or failed: raise what may pass, unless it happens again."""
        key = WorkloadKey(namespace, workload.mark)
        if not error.status:
            self._watch(workload, namespace)  # it may be suspended all the same
        if error.status == _FORBIDDEN:
            self._forbidden[workload.group, workload.kind] = None
            self._refuse(key, "forbidden", str(error))
        elif 0 < error.status < _SERVER_ERROR or key in self._failed:
            self._refuse(key, "failed", str(error))
        else:
            self._failed[key] = None
            raise error

    def _refuse(self, workload: WorkloadKey, outcome: str, why: str) -> None:
        self._refused[workload] = None
        self._metrics.suspensions.labels(outcome).inc()
        logger.info("workload not suspended", extra={"workload": workload.mark, "why": why})

    async def _is_ending(self, pod: ManagedPod) -> bool:
        """Wait until the controller ends a pod; False if that takes too long."""
        now = self._pods.get(pod.uid)
        if now is None or now.is_deleting:
            return True
        ends = self._awaited.setdefault(pod.uid, asyncio.Event())
        await wait_up_to(_CONTROLLER_SECONDS, ends)
        self._awaited.pop(pod.uid, None)
        return ends.is_set()

    def _see(self, pod: ManagedPod) -> None:
        if pod.is_deleting and pod.uid in self._awaited:
            self._awaited[pod.uid].set()

    def _forget(self, pod: ManagedPod) -> None:
        self._news.set()
        if pod.uid in self._awaited:
            self._awaited[pod.uid].set()

    # -- resuming

    def _watch(self, workload: Workload, namespace: str) -> None:
        until = self._clock.monotonic() + _GONE_SECONDS
        one = _Open(workload, namespace, until)
        self._open[one.key] = one
        self._news.set()

    async def run(self) -> NoReturn:
        """Resume what this leader, or one before it, has suspended, until cancelled."""
        if self._suspender is None:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._find_marked())
            while True:
                await wait_up_to(_LOOK_SECONDS, self._news)
                self._news.clear()
                due = [one for one in self._open.values() if self._is_due(one)]
                await asyncio.gather(*map(self._resume, due))

    def _is_due(self, one: _Open) -> bool:
        now = self._clock.monotonic()
        is_gone = not self._pods.workloads.of(one.key)
        return now >= one.next_try and (is_gone or now >= one.until)

    async def _resume(self, one: _Open) -> None:
        assert self._suspender is not None, "`run` was asked"
        try:
            done = await self._suspender.resume(one.workload, namespace=one.namespace)
        except BackendError as exc:
            logger.warning(
                "workload not resumed", extra={"workload": one.workload.mark, "error": str(exc)}
            )
            done = Resumption.NOT_YET
        if done is Resumption.NOT_YET:
            one.next_try = self._clock.monotonic() + one.pause
            one.pause = min(2 * one.pause, _LONGEST_PAUSE_SECONDS)
            return
        if self._open.get(one.key) is one:
            del self._open[one.key]
        if done is Resumption.DONE:
            self._metrics.suspensions.labels("resumed").inc()
            self._outcomes.ends.resumed(one.workload, namespace=one.namespace)

    async def _find_marked(self) -> None:
        """Learn the ages of workloads, and which of them the leader before has not resumed.

        A kind whose objects cannot be listed, perhaps for long, delays no other kind.
        """
        kinds = list(SUSPENDABLE)
        while True:
            kinds = [kind for kind in kinds if not await self._find_marked_of(kind)]
            if not kinds:
                return
            await asyncio.sleep(_LIST_AGAIN_SECONDS)

    async def _find_marked_of(self, kind: tuple[str, str]) -> bool:
        """Learn about the workloads of one kind; False if the API server failed."""
        assert self._suspender is not None, "`run` was asked"
        try:
            marked = await self._suspender.marked(*kind)
        except KubeError as exc:
            logger.warning("workloads not listed", extra={"kind": kind[1], "error": str(exc)})
            return False
        for one in marked:
            # A mark cannot make a workload older than the object is.
            asked = max(one.mark.first_asked, one.created)
            key = WorkloadKey(one.namespace, one.workload.mark)
            self._pods.note_first_asked(key, asked, submitter=one.submitter)
            if one.is_suspended and key not in self._open:
                self._watch(one.workload, one.namespace)
        return True
