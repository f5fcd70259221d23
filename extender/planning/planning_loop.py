"""The planner's loop: pods and nodes go in, patches and deletions come out.

`extender.queue` decides. The loop reports to it what the feeds say, runs its steps when something
has changed, reports the outcome and executes the actions, many at once.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NoReturn, TypeVar

from extender.cells.freed_cells import FreedCells
from extender.cells.model import MemberRequest, Reason, ReasonCode
from extender.cells.views.listings import Stepwise
from extender.feeds.own_failures import OwnFailures
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import PodNeeds
from extender.feeds.requests import ToRequest
from extender.planning.action_executor import ActionExecutor
from extender.planning.cluster_cells import ClusterCells
from extender.planning.held_pods import BY_USERS, HOLDING, HeldPods, gang_of, unknown_class
from extender.planning.pod_ranks import PodRanks
from extender.planning.queued_pods import QueuedPods
from extender.planning.silent_schedulers import SilentSchedulers
from extender.queue.gang_planner import GangPlanner
from extender.queue.held_bindings import GivenUp, Verdict
from extender.queue.model import Action, LeafCounts, StepResult
from extender.queue.reserve.model import Reservation
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from service.tasks import in_slices, wait_up_to

logger = logging.getLogger(__name__)

T = TypeVar("T")

_STEP_EVERY_SECONDS: Final = 0.5
OnReservations = Callable[[Sequence[Reservation], Sequence[GangKey]], None]


class PlanningLoop:
    """Plans gated gangs, for as long as this replica leads."""

    def __init__(
        self,
        *,
        cells: ClusterCells,
        pods: PodSink,
        needs: PodNeeds,
        to_request: ToRequest,
        held: HeldPods,
        executor: ActionExecutor,
        clock: Clock,
        ranks: PodRanks | None = None,
    ) -> None:
        self._pods = pods
        self._needs = needs
        self._to_request = to_request
        failures = OwnFailures(pods, clock=clock)
        self.to_queued = QueuedPods(pods, needs=needs, to_request=to_request, failures=failures)
        """Pods as the planner sees them."""
        self._held = held
        self._has_place = cells.has_place
        self._schedulers = SilentSchedulers(monotonic=clock.monotonic)
        self._executor = executor
        self._outcomes = cells.outcomes
        self._clock = clock
        self._calls = cells.calls
        self._prepare = cells.cluster.prepare_stepwise
        self._gangs = GangPlanner(
            cells,
            needs.nodes,
            cells.calls,
            order=ranks.order if ranks else None,
            run_times=ranks.run_times if ranks else None,
        )
        self.ranking = self._gangs.ranking
        self.seen = self._gangs.seen
        self.reservations = self._gangs.reservations
        self.on_reservations: list[OnReservations] = []
        """Callbacks that run with reservations that have changed, and gangs that use gaps."""
        self.on_actions: list[Callable[[Sequence[Action]], None]] = []
        """Callbacks that run with what a step asks for, before that is done."""
        self._news = asyncio.Event()
        needs.nodes.room.on_growth.append(self._news.set)
        needs.on_change.append(self._observe_again)
        pods.on_change.append(self._observe)
        pods.on_end.append(self._forget)
        held.by_users.on_change.append(self._observe)
        held.by_users.on_lifted.append(cells.outcomes.hold_lifted)
        pods.helpers.on_change.append(self._observe)
        pods.helpers.on_end.append(self._forget)
        pods.finished.on_change.append(self._observe_finished)
        cells.cluster.on_room.append(self.wake)
        cells.cluster.on_expiry.append(self._and_plan(self._expire))
        cells.cluster.on_loss.append(self._and_plan(self._gangs.unseat))
        cells.cluster.on_node_lost.append(self._and_plan(self._gangs.lose_node))
        cells.cluster.on_node_change.append(self._and_plan(self._gangs.reopen_node))
        cells.cluster.on_overdue.append(self._and_plan(self._gangs.give_up_on))

    # -- what the feeds say

    def _and_plan(self, note: Callable[[T], None]) -> Callable[[T], None]:
        """Make a callback that notes a change, and lets the loop plan soon."""

        def note_and_plan(change: T) -> None:
            note(change)
            self._news.set()

        return note_and_plan

    def wake(self, freed: FreedCells | None = None) -> None:
        """Retry waiting gangs: leaf cells became free; None: others joined or changed."""
        self._gangs.wake(freed)
        self._news.set()

    def plan_soon(self) -> None:
        """Let the loop plan soon: gangs may have changed places in the queue."""
        self._news.set()

    def rerank(self) -> Stepwise[None]:
        """Give waiting pods the priorities that their classes have now."""
        for pod in self._held.by_code(ReasonCode.UNKNOWN_CLASS):
            self._observe(pod)
            yield
        yield from self._gangs.rerank(self._priority)
        self.wake()

    def observe_groups(self) -> None:
        """Look again at pods without a PodGroup: PodGroups have changed."""
        for pod in self._held.by_code(ReasonCode.NO_POD_GROUP):
            self._observe(pod)

    def observe_charged(self, gang: GangKey) -> None:
        """Plan a gang that was charged: it does not wait for quota any more."""
        for member in self._pods.of_gang(gang):
            held = self._held.get(member.uid, ReasonCode.QUOTA)
            if held is not None:
                self._observe(held)

    def _priority(self, uid: PodUid) -> int | None:
        pod = self._pods.get(uid)
        try:
            return self._to_request(pod).priority if pod is not None else None
        except RequestError:
            return None

    def plans_for(self, uid: PodUid) -> bool:
        """Whether the planner places a pod."""
        return self._gangs.knows(uid)

    def offer_nodes(self, uid: PodUid, nodes: Collection[NodeName]) -> None:
        """Note that kube-scheduler offers nodes to a pod that has no place now."""
        self._gangs.offer_nodes(uid, nodes)
        self._news.set()

    def may_start(self, uid: PodUid) -> bool:
        """Whether the gang of a helper has its places; if not, the helper is woken later."""
        return self._gangs.may_start(uid)

    def refuse_node(self, uid: PodUid) -> None:
        """Note that kube-scheduler does not offer a pod the node that is leased for it."""
        self._gangs.refuse_node(uid, now=self._clock.monotonic())

    def _observe(self, pod: ManagedPod) -> None:
        """Pass a pod on to the planner if it has or had the gate of Cellgate, or hold it."""
        if not (pod.is_gated or pod.is_released):
            self._end_hold(pod)
            return
        reason = self._held.reason_to_hold(pod) or self._silent_reason(pod)
        if reason is None:
            try:
                self._gangs.see(self.to_queued(pod))
            except RequestError as exc:
                reason = unknown_class(pod, exc)
        if reason is not None:
            self._held.put(pod, reason, now=self._clock.monotonic())
            if reason.code in (ReasonCode.NO_SCHEDULER, *BY_USERS):
                self._gangs.lose(pod.uid)
        else:
            self._end_hold(pod)
        self._news.set()
        if pod.is_released and self._held.holds_any(ReasonCode.QUOTA):
            self.observe_charged(pod.gang.key)  # the leader that released this pod has charged it

    def note_asked(self, pod: ManagedPod) -> None:
        """Note that the scheduler of a pod asks about it."""
        if self._schedulers.note_asked(pod):
            self._observe_unscheduled()

    def _silent_reason(self, pod: ManagedPod) -> Reason | None:
        is_placed = pod.node is not None or self._has_place(pod.uid)
        return None if is_placed else self._schedulers.reason(pod)

    def _expire(self, gangs: Sequence[GangKey]) -> None:
        """Plan gangs again whose leases expired, unless their scheduler does not run."""
        self._gangs.expire(gangs)
        unused = [
            pod
            for gang in gangs
            for pod in self._pods.of_gang(gang)
            if pod.is_released and pod.node is None
        ]
        if any([self._schedulers.note_unused(pod) for pod in unused]):
            for pod in [pod for pod in self._pods if self._silent_reason(pod) is not None]:
                self._observe(pod)

    def _observe_unscheduled(self) -> None:
        """Look again at pods that are held because of their scheduler."""
        for pod in self._held.by_code(ReasonCode.NO_SCHEDULER):
            if self._schedulers.reason(pod) is None:
                self._observe(pod)

    def reason_to_hold(self, pod: ManagedPod) -> Reason | None:
        """Return what a pod that may not exist waits for before it can be planned."""
        return self._held.reason_to_hold(pod)

    def _end_hold(self, pod: ManagedPod) -> None:
        """Plan a pod from now on; its gang may wait for other pods that are still held."""
        reported = self._held.remove(pod)
        if reported is None:
            return
        others = () if pod.is_charged_alone else self._pods.of_gang(pod.gang.key)
        held = ((other, self._held.reason(other.uid)) for other in others)
        still = next(((other, why) for other, why in held if why is not None), None)
        self._outcomes.hold_ended(gang_of(pod), reported.code, still=still)

    def _observe_finished(self, gang: GangKey, workload: str, finished: LeafCounts) -> None:
        self._gangs.note_finished(gang, workload, finished)
        self._news.set()

    def _observe_again(self, uid: PodUid) -> None:
        """Look again at a pod whose volumes have changed."""
        pod = self._pods.get(uid)
        if pod is not None and pod.node is None:
            self._observe(pod)

    def _forget(self, pod: ManagedPod) -> None:
        self._needs.forget(pod.uid)
        self._held.remove(pod)
        self._gangs.lose(pod.uid)
        self._news.set()

    # -- bindings

    def verdict(
        self, uid: PodUid, *, is_open: Callable[[], bool]
    ) -> AbstractAsyncContextManager[Verdict]:
        """Wait until a pod may be bound, or its gang is given up.

        `is_open` tells whether the caller still waits. The pod counts as being bound until the
        context ends.
        """
        return self._calls.asked(uid, is_open=is_open, ask=lambda: self._arrive(uid))

    def _arrive(self, uid: PodUid) -> None:
        self._gangs.arrive(uid, now=self._clock.monotonic())
        self._deliver()

    def _deliver(self) -> None:
        verdicts = self._gangs.held.take_verdicts()
        given_up = {one.gang: one for one in verdicts.values() if one.given_up is not None}
        for verdict in given_up.values():
            self._outcomes.binding_given_up(verdict)
        self._calls.deliver(verdicts)

    def _give_up_all(self) -> None:
        """Answer every call that is held: another replica plans these gangs."""
        for gang in list(self._gangs.held):
            self._gangs.held.give_up(gang, GivenUp.STOPPED)
        self._deliver()

    @property
    def held_gangs(self) -> int:
        """The number of gangs whose bindings are held."""
        return len(self._gangs.held)

    def held_reason(self, gang: GangKey) -> Reason | None:
        """Explain why the bindings of a gang are held, if they are."""
        return self._gangs.held.reason(gang)

    # -- planning

    async def run(self) -> NoReturn:
        """Plan whenever something has changed, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._wait_for_news()
                    to_prepare = self._step(group)
                    if to_prepare is not None:
                        await in_slices(self._prepare(to_prepare))
                    await asyncio.sleep(0)  # let other tasks run, above all kube-scheduler's verbs
        finally:
            self._give_up_all()

    def _step(self, group: asyncio.TaskGroup) -> MemberRequest | None:
        """Make a step, and return the request for which a decision is to be prepared, if any."""
        now = self._clock.monotonic()
        self._observe_unscheduled()
        self._held.by_users.update()
        self.ranking.note_time(self._clock.now().timestamp())
        step = self._gangs.step(now=now)
        self._report(step, now=now)
        for tell in self.on_actions:
            tell(step.actions)
        for action in step.actions:
            group.create_task(self._execute(action))
        if step.has_more:
            self._news.set()
        if self._calls.is_stopping():
            self._give_up_all()
        self._deliver()
        return step.to_prepare

    async def _wait_for_news(self) -> None:
        # Without news, too: pauses and leases end with time. Windows begin and end on time.
        due, now = self.reservations.calendar.next_time(), self._clock.now().timestamp()
        seconds = _STEP_EVERY_SECONDS if due is None else min(_STEP_EVERY_SECONDS, due - now)
        await wait_up_to(max(0.0, seconds), self._news)
        self._news.clear()

    def _report(self, step: StepResult, *, now: float) -> None:
        if step.reservations or step.backfilled:
            for tell in self.on_reservations:
                tell(step.reservations, step.backfilled)
        for decision in step.moves:
            self._outcomes.gangs_moved(decision)
        for pod, reason in self._held.take_due(now):
            entry = self._outcomes.waiting.gangs.get(gang_of(pod))
            told = entry.reason.code if entry is not None else None
            is_other = told in HOLDING and told is not reason.code
            if told is None or is_other or reason.code in BY_USERS:
                self._outcomes.gang_waits(gang_of(pod), pod, reason)
        for gang, notice in step.notices.items():
            if notice is None:
                self._outcomes.gang_resumed(gang)
            elif notice.reason.code is ReasonCode.GATHERING and self._awaits_quota(gang):
                continue  # only its helpers are seen: they are not charged
            elif (first := self._pods.get(notice.uid)) is not None:
                self._outcomes.gang_waits(gang, first, notice.reason)

    def _awaits_quota(self, gang: GangKey) -> bool:
        entry = self._outcomes.waiting.gangs.get(gang)
        return entry is not None and entry.reason.code is ReasonCode.QUOTA

    async def _execute(self, action: Action) -> None:
        try:
            await self._executor.execute(action, is_wanted=lambda: self._gangs.is_wanted(action))
            self._gangs.succeed(action, now=self._clock.monotonic())
        except BackendError as exc:
            logger.info("action not executed", extra={"pod_uid": action.uid, "error": str(exc)})
            self._gangs.fail(action, now=self._clock.monotonic())
        self._news.set()
