"""Builds what answers in an extender: the planner, kube-scheduler's verbs, explanations."""

from collections.abc import Callable

from extender.calendar_wiring import CalendarParts
from extender.cluster.queue_log import QueueLog
from extender.feeds.requests import to_member_request
from extender.forecasts.queue_view import PlannedQueueView
from extender.inspection.explainer import Explainer
from extender.inspection.waiting_view import CELLS_QUEUE, QUOTA_QUEUE, WaitingView
from extender.outcomes.evictions import Evictions
from extender.outcomes.pod_events import PodEvents
from extender.planning.action_executor import ActionExecutor
from extender.planning.cluster_cells import ClusterCells
from extender.planning.held_calls import HeldCalls
from extender.planning.held_pods import HeldPods
from extender.planning.pending_writes import PendingWrites
from extender.planning.planning_loop import PlanningLoop
from extender.planning.promise_keeper import PromiseKeeper
from extender.planning.queue_order import QueueOrder
from extender.planning.user_requests.kept_hold_writer import KeptHoldWriter
from extender.planning.user_requests.start_wishes import StartWishes
from extender.planning.user_requests.user_holds import UserHolds
from extender.planning.user_requests.user_swaps import UserSwaps
from extender.queue.order.listing import Ranked
from extender.verbs.bind import BindVerb
from extender.verbs.filter import FilterVerb
from extender.verbs.pod_decider import PodDecider
from extender.verbs.preempt import PreemptVerb
from extender.verbs.unmanaged_pods import UnmanagedPods
from extender.wiring import ExtenderState
from kube.api.binder import Binder
from kube.api.client import KubeClient
from kube.api.pod_ender import PodEnder
from kube.api.pod_writer import PodMarker


class ExtenderVerbs:
    """The parts that answer: the planner, kube-scheduler's verbs, and explanations."""

    def __init__(
        self, state: ExtenderState, client: KubeClient, *, is_stopping: Callable[[], bool]
    ) -> None:
        """`is_stopping` tells whether this process was asked to end."""
        to_request = state.translating(to_member_request)
        self.decider = PodDecider(
            cluster=state.cluster,
            pods=state.pods,
            to_request=to_request,
            outcomes=state.outcomes,
            clock=state.clock,
        )
        self.pending = PendingWrites()
        hold_seconds = state.settings.hold_seconds
        self.calls = HeldCalls(self.pending, is_stopping=is_stopping, longest_seconds=hold_seconds)
        self.evictions = _build_evictions(state, client)
        self.cells = cells = ClusterCells(
            state.cluster, state.pods, outcomes=state.outcomes, calls=self.calls
        )
        executor = ActionExecutor(
            client,
            leading=state.leading,
            pods=state.pods,
            pending=self.pending,
            evictions=self.evictions,
        )
        holds = UserHolds(state.pods, has_place=state.cluster.has_place, clock=state.clock)
        self.kept_holds = _build_kept_holds(state, client, holds)
        self.planner = _build_planner(state, cells=cells, executor=executor, holds=holds)
        self.promises = _build_promises(state, self.planner)
        unmanaged = UnmanagedPods()
        self.binding = _build_binding(state, client, holds=self.planner, unmanaged=unmanaged)
        self.filter = FilterVerb(
            planner=self.planner,
            decider=self.decider,
            cluster=state.cluster,
            unmanaged=unmanaged,
            metrics=state.metrics,
        )
        self.preemption = PreemptVerb(
            plans_for=self.planner.plans_for,
            decider=self.decider,
            pods=state.pods,
            waiting=state.outcomes.waiting,
            cluster=state.cluster,
            evictions=self.evictions,
            may_suspend=state.reclaims.may_suspend,
            is_bound=cells.is_bound,
        )
        self.queue_order = _build_queue_order(state, self.planner)
        self.calendar = CalendarParts(state, self.planner, self.promises)
        self.waiting = _build_waiting(state, self.planner)
        self.waiting.reservation_of = self.promises.find
        self.swaps = _build_swaps(state, client, self.planner)
        self.wishes = _build_wishes(state, self.planner)
        state.forecasts.starts.queue = PlannedQueueView(
            self.planner.seen, self.planner.ranking, self.planner.reservations, cells
        )
        self.waiting.expected_start = state.forecasts.starts.show
        self.explainer = _build_explainer(state, self.waiting)


def _build_kept_holds(state: ExtenderState, client: KubeClient, holds: UserHolds) -> KeptHoldWriter:
    return KeptHoldWriter(holds, marker=PodMarker(client, check_leading=state.leading.check))


def _build_swaps(state: ExtenderState, client: KubeClient, planner: PlanningLoop) -> UserSwaps:
    return UserSwaps(
        state.pods,
        ranking=planner.ranking,
        reservations=planner.reservations,
        marker=PodMarker(client, check_leading=state.leading.check),
        events=PodEvents(state.events),
        plan_soon=planner.plan_soon,
    )


def _build_wishes(state: ExtenderState, planner: PlanningLoop) -> StartWishes:
    return StartWishes(
        state.pods,
        waiting=lambda: [*planner.ranking.in_order(), *_queued(state)],
        expected=state.forecasts.starts.median,
        journal=state.cluster.journal,
        events=PodEvents(state.events),
        clock=state.clock,
    )


def _build_explainer(state: ExtenderState, waiting: WaitingView) -> Explainer:
    return Explainer(
        cluster=state.cluster,
        pods=state.pods,
        ends=state.outcomes.ends,
        waiting=waiting,
        raises=state.class_raiser,
        log=state.log,
    )


def _build_binding(
    state: ExtenderState, client: KubeClient, *, holds: PlanningLoop, unmanaged: UnmanagedPods
) -> BindVerb:
    return BindVerb(
        leading=state.leading,
        cluster=state.cluster,
        pods=state.pods,
        binder=Binder(client, check_leading=state.leading.check),
        holds=holds,
        unmanaged=unmanaged,
        metrics=state.metrics,
        clock=state.clock,
    )


def _build_promises(state: ExtenderState, planner: PlanningLoop) -> PromiseKeeper:
    keeper = PromiseKeeper(
        reservations=planner.reservations,
        pods=state.pods,
        events=PodEvents(state.events),
        metrics=state.metrics,
        term=state.term,
        clock=state.clock,
    )
    planner.on_reservations.append(keeper.report)
    return keeper


def _build_queue_order(state: ExtenderState, planner: PlanningLoop) -> QueueOrder:
    order = QueueOrder(
        state.order,
        planner.ranking,
        policies=state.policies,
        history=state.history,
        counts=lambda: state.census.leaf_cells,
        topology=lambda: state.cluster.topology,
        clock=state.clock,
    )
    order.on_reorder.append(planner.plan_soon)
    _log_queue(state, planner, order)
    return order


def _log_queue(state: ExtenderState, planner: PlanningLoop, order: QueueOrder) -> None:
    log = QueueLog(
        state.cluster,
        ranking=planner.ranking,
        reservations=planner.reservations,
        policy=lambda: order.policy,
    )
    planner.on_actions.append(log.note_actions)


def _build_waiting(state: ExtenderState, planner: PlanningLoop) -> WaitingView:
    quota = state.quota_queue
    view = WaitingView(
        state.outcomes.waiting,
        pods=state.pods,
        has_place=state.cluster.has_place,
        orders={CELLS_QUEUE: planner.ranking.in_order, QUOTA_QUEUE: lambda: _queued(state)},
        lacks=quota.lacks if quota else lambda _: (),
        held_reason=planner.held_reason,
        queues=lambda: state.policies.policy.queues,
        clock=state.clock,
    )
    view.moves_for = planner.reservations.moves.find
    return view


def _queued(state: ExtenderState) -> list[Ranked]:
    """Return the gangs that wait for quota, in the order in which they are charged."""
    quota = state.quota_queue
    return [state.pod_ranks.ranked(pods) for pods in quota.by_rank()] if quota else []


def _build_evictions(state: ExtenderState, client: KubeClient) -> Evictions:
    ender = PodEnder(client, check_leading=state.leading.check, clock=state.clock)
    evictions = Evictions(
        ender,
        pods=state.pods,
        outcomes=state.outcomes,
        reclaims=state.reclaims,
        note_for=state.budget_sync.note_for,
        grace=lambda: state.policies.policy.queues.preemption.grace,
    )
    evictions.on_reclaimed.append(state.reclaimed_ages.note)
    return evictions


def _build_planner(
    state: ExtenderState, *, cells: ClusterCells, executor: ActionExecutor, holds: UserHolds
) -> PlanningLoop:
    held = HeldPods(awaits_group=state.groups.is_awaited, quota=state.quota_queue, by_users=holds)
    planner = PlanningLoop(
        cells=cells,
        pods=state.pods,
        needs=state.pod_needs,
        to_request=state.translating(to_member_request),
        held=held,
        executor=executor,
        clock=state.clock,
        ranks=state.pod_ranks,
    )
    state.reranker.on_change.append(planner.rerank)
    state.groups.on_change.append(planner.observe_groups)
    if state.quota_queue is not None:
        state.quota_queue.on_charged.append(planner.observe_charged)
        state.quota_queue.is_held = holds.is_held
        holds.on_change.append(state.quota_queue.note_pod)
    return planner
