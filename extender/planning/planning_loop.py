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
from extender.feeds.requests import ToRequest, to_placement, to_single_request
from extender.outcomes.outcomes import Outcomes
from extender.planning.action_executor import ActionExecutor
from extender.planning.cluster_cells import ClusterCells
from extender.planning.held_pods import (
    HeldPods,
    Hold,
    HoldCode,
    class_hold,
    gate_hold,
    group_hold,
    quota_hold,
)
from extender.planning.quota_queue import QuotaQueue
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import Action, QueuedPod, StepResult
from kube.read.node_choice import NodeChoice
from kube.read.pods import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from service.tasks import wait_up_to

logger = logging.getLogger(__name__)

_LOOK_EVERY_SECONDS: Final = 0.5


class Planner:
    """Runs the planning of gated gangs."""

    def __init__(
        self,
        *,
        cells: ClusterCells,
        pods: PodSink,
        nodes: NodeChoice,
        to_request: ToRequest,
        executor: ActionExecutor,
        outcomes: Outcomes,
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._to_request = to_request
        self._awaits_group: Callable[[ManagedPod], bool] = lambda _: False
        self._executor = executor
        self._outcomes = outcomes
        self._clock = clock
        self._gangs = GangPlanner(cells, nodes)
        self._news = asyncio.Event()
        pods.on_change.append(self._see)
        pods.on_end.append(self._lose)
        self._quota: QuotaQueue | None = None
        self._held = HeldPods()
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
        for member in self._pods.of_gang(gang):
            held = self._held.awaiting_quota(member.uid)
            if held is not None:
                self._see(held)

    def rerank(self) -> None:
        """Classes mean something else now: so do the pods that wait."""
        for pod in self._held.by_code(HoldCode.CLASS):
            self._see(pod)
        self._gangs.rerank(self._priority)
        self.wake()

    def follow_groups(self, awaits_group: Callable[[ManagedPod], bool]) -> None:
        """Leave pods alone whose gang's size is not known yet."""
        self._awaits_group = awaits_group

    def look_for_groups(self) -> None:
        """PodGroups came, changed or went: now it may be known how large a gang is."""
        for pod in self._held.by_code(HoldCode.POD_GROUP):
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

    def _see(self, pod: ManagedPod) -> None:
        """Take note of a pod that our gate holds or held."""
        if not (pod.is_gated or pod.is_released):
            self._let_go(pod.uid)
            return
        hold = self._hold(pod)
        if hold is None:
            try:
                self._gangs.see(_to_queued(pod, self._to_request))
            except RequestError as exc:
                hold = class_hold(pod, exc)
        if hold is not None:
            self._held.put(pod, hold, now=self._clock.monotonic())
        else:
            self._let_go(pod.uid)
        self._news.set()
        if pod.is_released and self._held.has(HoldCode.QUOTA):
            self._note_charged(pod.gang.key)  # by the leader that released this pod

    def _hold(self, pod: ManagedPod) -> Hold | None:
        """What a pod waits for before it can be planned."""
        if not pod.is_gated:
            return None
        if self._quota is not None and self._quota.holds(pod):
            return quota_hold(pod)
        if pod.is_held_by_others:
            return gate_hold(pod)
        return group_hold(pod) if self._awaits_group(pod) else None

    def _let_go(self, uid: PodUid) -> None:
        """A pod is not held any more; if that was reported, its gang does not wait for it."""
        hold = self._held.remove(uid)
        if hold is not None:
            self._outcomes.gang_resumed(hold.gang)

    def _lose(self, pod: ManagedPod) -> None:
        self._held.remove(pod.uid)
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
                now = self._clock.monotonic()
                step = self._gangs.step(now=now)
                self._report(step, now=now)
                for action in step.actions:
                    group.create_task(self._execute(action))
                if step.has_more:
                    self._news.set()
                await asyncio.sleep(0)  # others, kube-scheduler above all, get a turn

    async def _wait_for_news(self) -> None:
        # Time itself is news: pauses and leases end.
        await wait_up_to(_LOOK_EVERY_SECONDS, self._news)
        self._news.clear()

    def _report(self, step: StepResult, *, now: float) -> None:
        for pod, hold in self._held.take_due(now):
            self._outcomes.gang_waits(
                hold.gang, pod, code=hold.code, reason=hold.reason, change=hold.change
            )
        for gang, notice in step.notices.items():
            if notice is None:
                self._outcomes.gang_resumed(gang)
            elif (first := self._pods.get(notice.uid)) is not None:
                why = notice.reason
                self._outcomes.gang_waits(
                    gang, first, code=why.code, reason=why.text, change=why.change
                )

    async def _execute(self, action: Action) -> None:
        try:
            await self._executor.execute(action, is_wanted=lambda: self._gangs.is_wanted(action))
            self._gangs.succeed(action, now=self._clock.monotonic())
        except BackendError as exc:
            logger.info("action not executed", extra={"pod_uid": action.uid, "error": str(exc)})
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
