"""The planner's hands and ears: pods and nodes go in, patches and deletions come out.

What is decided is decided by `extender.queue`; here it is told what is seen, its steps are run when
there is something new, and what it asks for is done, many things at once.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from extender.cells.model import MemberRequest
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import to_placement, to_single_request
from extender.metrics import ExtenderMetrics
from extender.outcomes.announcer import Announcer
from extender.planning.actions import Hands
from extender.planning.cluster_cells import ClusterCells
from extender.planning.quota_queue import QuotaQueue
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import Action, QueuedPod, Step, Tell
from extender.verbs.questions import ToRequest
from kube.read.node_choice import NodeChoice
from kube.read.pods import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from service.tasks import wait_up_to

logger = logging.getLogger(__name__)

_LOOK_EVERY_SECONDS: Final = 0.5
_AT_ONCE: Final = 48
"""Writes under way at the same time: enough to keep an API server busy, and room for bindings."""


class Planner:
    """Runs the planning of gated gangs."""

    def __init__(
        self,
        *,
        cells: ClusterCells,
        pods: PodSink,
        nodes: NodeChoice,
        to_request: ToRequest,
        hands: Hands,
        announcer: Announcer,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._to_request = to_request
        self._awaits_group: Callable[[ManagedPod], bool] = lambda _: False
        self._hands = hands
        self._announcer = announcer
        self._metrics = metrics
        self._clock = clock
        self._gangs = GangPlanner(cells, nodes)
        self._news = asyncio.Event()
        self._writes = asyncio.Semaphore(_AT_ONCE)
        pods.on_change.append(self._see)
        pods.on_end.append(self._lose)
        self._quota: QuotaQueue | None = None
        self._held: dict[PodUid, ManagedPod] = {}
        """Pods whose gang waits for quota, as they were last seen."""
        self._reasons: dict[GangKey, str] = {}
        """Why gangs wait, as their owners were told last."""
        self._misfits: dict[PodUid, ManagedPod] = {}
        """Pods of a class that is not listed, as they were last seen."""
        self._groupless: dict[PodUid, ManagedPod] = {}
        """Pods whose PodGroup is not known, as they were last seen."""
        cells.follow(on_room=self.wake, on_expiry=self._expire, on_loss=self._unseat)
        cells.follow_nodes(self._lose_node)
        cells.follow_ends(self._give_up_on)

    # -- what is seen

    def wake(self) -> None:
        """Leaf cells came free, joined or changed."""
        self._gangs.wake()
        self._news.set()

    def follow_quota(self, quota: QuotaQueue) -> None:
        """Leave gangs alone that wait for quota, until they are charged."""
        self._quota = quota
        quota.on_charged.append(self._note_charged)

    def _note_charged(self, gang: GangKey) -> None:
        for pod in [held for held in self._held.values() if held.gang.key == gang]:
            self._see(pod)

    def rerank(self) -> None:
        """Classes mean something else now: so do the pods that wait."""
        for pod in list(self._misfits.values()):
            self._see(pod)
        self._gangs.rerank(self._priority)
        self.wake()

    def follow_groups(self, awaits_group: Callable[[ManagedPod], bool]) -> None:
        """Leave pods alone whose gang's size is not known yet."""
        self._awaits_group = awaits_group

    def look_for_groups(self) -> None:
        """PodGroups came, changed or went: now it may be known how large a gang is."""
        for pod in list(self._groupless.values()):
            self._see(pod)

    def _priority(self, uid: PodUid) -> int | None:
        pod = self._pods.get(uid)
        try:
            return self._to_request(pod).priority if pod is not None else None
        except RequestError:
            return None

    def plans_for(self, uid: PodUid) -> bool:
        """Whether a pod is one of those that the planner places."""
        return self._gangs.knows(uid)

    def refuse_node(self, uid: PodUid) -> None:
        """kube-scheduler does not offer a pod the node that is leased for it."""
        self._gangs.refuse_node(uid, now=self._clock.monotonic())

    def why_queued(self, pod: ManagedPod) -> str:
        """Say why our gate still holds a pod."""
        if pod.uid in self._held:
            return f"gang {pod.gang.key} waits for quota of group {pod.charged_group}"
        if pod.uid in self._groupless:
            return f"gang {pod.gang.key} waits for its PodGroup, which says how large it is"
        if pod.is_held_by_others:
            return f"pod {pod.display_name} is held by a scheduling gate that is not ours"
        return self._reasons.get(pod.gang.key, f"gang {pod.gang.key} waits for its turn")

    def _see(self, pod: ManagedPod) -> None:
        """Take note of a pod that our gate holds or held."""
        if not (pod.is_gated or pod.is_released):
            return
        if self._quota is not None and self._quota.holds(pod):
            self._held[pod.uid] = pod
            return
        self._held.pop(pod.uid, None)
        self._misfits.pop(pod.uid, None)
        self._groupless.pop(pod.uid, None)
        if pod.is_gated and pod.is_held_by_others:
            return  # it could not start: nobody may end for it, nor find its cells taken
        if pod.is_gated and self._awaits_group(pod):
            self._groupless[pod.uid] = pod
            return
        try:
            self._gangs.see(_to_queued(pod, self._to_request))
        except RequestError as exc:
            # The webhook lets no such pod in; one that came while it was away waits, and is told.
            self._misfits[pod.uid] = pod
            self._refuse(pod, str(exc))
        self._news.set()
        if pod.is_released and self._held:
            self._note_charged(pod.gang.key)  # by the leader that let this one go

    def _lose(self, pod: ManagedPod) -> None:
        self._held.pop(pod.uid, None)
        self._misfits.pop(pod.uid, None)
        self._groupless.pop(pod.uid, None)
        if not self._pods.of_gang(pod.gang.key):
            self._reasons.pop(pod.gang.key, None)
        self._gangs.lose(pod.uid)
        self._news.set()

    def _expire(self, gangs: Sequence[GangKey]) -> None:
        self._gangs.expire(gangs)
        self._news.set()

    def _lose_node(self, node: NodeName) -> None:
        self._gangs.lose_node(node)
        self._news.set()

    def _give_up_on(self, victim: GangKey) -> None:
        self._gangs.give_up_on(victim)
        self._news.set()

    def _unseat(self, gangs: Sequence[GangKey]) -> None:
        self._gangs.unseat(gangs)
        self._news.set()

    # -- what is done

    async def run(self) -> NoReturn:
        """Plan whenever there is something new, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wait_for_news()
                step = self._gangs.step(now=self._clock.monotonic())
                self._tell(step)
                for action in step.actions:
                    group.create_task(self._perform(action))
                if step.has_more:
                    self._news.set()
                await asyncio.sleep(0)  # others, kube-scheduler above all, get a turn

    async def _wait_for_news(self) -> None:
        # Time itself is news: pauses and leases end.
        await wait_up_to(_LOOK_EVERY_SECONDS, self._news)
        self._news.clear()

    def _tell(self, step: Step) -> None:
        for decision in step.decisions:
            self._metrics.count_decision(decision)
        for tell in step.tells:
            self._announce(tell)

    def _announce(self, tell: Tell) -> None:
        pod = self._pods.get(tell.uid)
        if pod is not None:
            self._refuse(pod, tell.reason)

    def _refuse(self, pod: ManagedPod, reason: str) -> None:
        self._reasons[pod.gang.key] = reason
        self._announcer.refused(pod, reason)

    async def _perform(self, action: Action) -> None:
        async with self._writes:
            pod = self._pods.get(action.uid)
            try:
                if pod is None:
                    raise BackendError("its pod is gone")
                with self._hands.writing.to(action.uid):
                    version = await self._hands.do(
                        action, pod, is_wanted=lambda: self._gangs.is_wanted(action)
                    )
                    if version is not None:
                        self._pods.note_version(action.uid, version)
                self._gangs.succeed(action, now=self._clock.monotonic())
            except BackendError as exc:
                logger.info(
                    "planned action not done", extra={"pod_uid": action.uid, "why": str(exc)}
                )
                self._gangs.fail(action, now=self._clock.monotonic())
        self._news.set()


def _to_queued(pod: ManagedPod, to_request: Callable[[ManagedPod], MemberRequest]) -> QueuedPod:
    request = to_request(pod)
    return QueuedPod(
        request=request,
        gang_size=len(request.gang_leaf_counts),
        is_gated=pod.is_gated,
        is_ending=pod.is_deleting,
        node=pod.node,
        nominated=pod.nominated_node,
        is_refused=pod.is_refused,
        placement=to_placement(pod),
        node_wish=pod.node_wish,
        may_preempt=pod.may_preempt,
        # A PodGroup says how many members are needed, not how many there may be.
        alone=to_single_request(request, pod) if pod.gang.size is None else None,
    )
