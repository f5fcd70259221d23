"""The planner: it places whole gangs before kube-scheduler sees their pods.

The planner is a step function over the pods that it has seen. `see` and `lose` report pods, `wake`
reports leaf cells that may be usable; `step` decides about waiting gangs and returns the actions to
take; `succeed` and `fail` report the result of an action. Reports may be late, repeated or lost for
a while, so every step starts from the latest state and keeps no conclusion that the state implies.

    gathering ──enough members──▶ waiting ──fits──▶ leased ──each released, bound──▶ runs
        ▲                          │  ▲ │                │
        │                          │  │ └─needs victims─▶ preempting ──they ended──▶ leased
        └──── members vanished ────┘  └── lease not used in time, node refused ──┘
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from math import inf

from extender.cells.freed_cells import FreedCells
from extender.cells.model import Place, Preempt, Reject, Wait
from extender.cells.views.listings import Stepwise
from extender.queue.alternatives.forms import decide_forms, settle_form
from extender.queue.attempts import Attempts
from extender.queue.contended_nodes import ContendedNodes
from extender.queue.held_bindings import GivenUp, HeldBindings
from extender.queue.in_flight import InFlightPods
from extender.queue.lines.sleepers import lack_of
from extender.queue.member_places import (
    is_bound,
    is_too_few,
    may_start,
    refusal,
    shape_now,
    unplaced,
    unready_request,
)
from extender.queue.model import Action, EvictPod, QueuedPod, ReleaseHelper, StepResult
from extender.queue.notices import Notices
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.ranking import Ranking
from extender.queue.ports import BindCalls, Cells, Nodes, RunTimes, UnknownRunTimes
from extender.queue.queued_gang import PriorityOf, QueuedGang
from extender.queue.refused_places import RefusedPlaces
from extender.queue.reserve.reservations import Reservations
from extender.queue.reserve.room_bounds import RoomBounds
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from extender.queue.wanted_actions import (
    has_release,
    is_wanted,
    still_preempts,
    void_nominations,
    wanted_actions,
)
from extender.queue.withdrawals import Withdrawals
from policy.submission import GangKey, NodeName, PodUid

_GANGS_PER_STEP = 8


class GangPlanner:
    """Plans the gangs whose pods our gate holds. It changes cells and nothing else."""

    def __init__(
        self,
        cells: Cells,
        nodes: Nodes,
        calls: BindCalls,
        *,
        order: GangOrder | None = None,
        run_times: RunTimes | None = None,
    ) -> None:
        self._cells = cells
        self._nodes = nodes
        self.seen = self._seen = SeenGangs()
        self.note_finished = self._seen.note_finished
        self.waiting = self._waiting = WaitingGangs()
        self.ranking = Ranking(
            order or GangOrder(),
            run_times or UnknownRunTimes(),
            seen=self._seen,
            waiting=self._waiting,
        )
        """The ranks of all gangs that wait."""
        self._attempts = Attempts()
        self._refused = RefusedPlaces()
        self._contended = ContendedNodes(cells)
        self._in_flight = InFlightPods()
        self.held = HeldBindings(cells, calls)
        """The members that kube-scheduler asks to bind, while others are missing."""
        self._places = Withdrawals(
            cells,
            seen=self._seen,
            waiting=self._waiting,
            in_flight=self._in_flight,
            refused=self._refused,
            held=self.held,
        )
        self.reopen_node = self._places.reopen_node
        self.reservations = Reservations(
            cells,
            nodes,
            run_times or UnknownRunTimes(),
            seen=self._seen,
            waiting=self._waiting,
            ranking=self.ranking,
        )
        """Cells that are kept for gangs which wait for long."""
        self._bounds = self._waiting.bounds = RoomBounds(
            cells, self.reservations.gaps, seen=self._seen, waiting=self._waiting
        )
        self.lose_node = self._places.lose_node
        self.expire = self._places.expire
        self.unseat = self._places.unseat
        self._prepared: GangKey | None = None
        """The gang for which the last step asked to prepare a decision."""
        self._notices = Notices()

    # -- reports

    def knows(self, uid: PodUid) -> bool:
        """Tell whether the planner has seen a pod."""
        return uid in self._seen.pods

    def see(self, pod: QueuedPod) -> None:
        """A pod that our gate holds or held appeared or changed."""
        if not self._seen.put(pod):
            self._forget_gone(pod.request.gang)
            return
        if pod.node is not None:
            self._settle_member(pod.uid)
        else:
            self._contended.see(pod)

    def rerank(self, priority_of: PriorityOf) -> Stepwise[None]:
        """Pods have new priorities; yields after each gang."""
        for gang in list(self._seen):
            for pod in gang.reranked(priority_of):
                self.see(pod)
            yield

    def lose(self, uid: PodUid) -> None:
        """A pod, queued or not, ended or was deleted; `wake` says which leaf cells it leaves."""
        gang = self._seen.find_of(uid)
        self._seen.drop(uid)
        if gang is not None:
            self._forget_gone(gang.key)
        self._settle_member(uid)

    def wake(self, freed: FreedCells | None = None) -> None:
        """Leaf cells became free; None: others joined or changed."""
        self._waiting.wake(freed)
        self.reservations.note_freed(freed)

    def give_up_on(self, victim: GangKey) -> None:
        """A victim takes too long to end: gangs that wait for it are planned again."""
        for gang in [self._seen[key] for key in self._seen.unfinished]:
            if victim in gang.victims:
                self._places.withdraw(*(uid for uid in gang.pods if not self._cells.is_bound(uid)))
                self._seen.note_change(gang.key)
                self._waiting.wake()

    def refuse_node(self, uid: PodUid, *, now: float) -> None:
        """kube-scheduler refused the node that is leased for a pod."""
        if self._cells.has_place(uid):
            self._refused.refuse(uid, now=now)

    def offer_nodes(self, uid: PodUid, nodes: Collection[NodeName]) -> None:
        """kube-scheduler offers nodes to a member that has no place now."""
        gang = self._seen.find_of(uid)
        if gang is not None and gang.accept_nodes(nodes, member=uid):
            self._seen.note_change(gang.key)
            self._waiting.wake()

    def may_start(self, uid: PodUid) -> bool:
        """Tell whether the gang of a helper has its places; if not, wake the helper later."""
        gang = self._seen.find_of(uid)
        if gang is None or may_start(gang, self._cells):
            return True
        gang.asleep.add(uid)
        self._attempts.forget(uid)
        return False

    def arrive(self, uid: PodUid, *, now: float) -> None:
        """kube-scheduler asks to bind a pod: `held` says whether it may be bound."""
        self._refused.forget(uid)
        if self.held.arrive(uid, self._seen.find_of(uid), now=now):
            self._note_change_of(uid)  # members that were refused before count from now on

    def _settle_member(self, uid: PodUid) -> None:
        self._attempts.forget(uid)
        self._refused.forget(uid)
        self._contended.forget(uid)
        self._in_flight.leave(uid)

    # -- results of actions

    def is_wanted(self, action: Action) -> bool:
        """Tell whether an action that is not finished is still useful."""
        return is_wanted(action, self._seen, self._cells, self._contended)

    def succeed(self, action: Action, *, now: float) -> None:
        """An action succeeded."""
        self._attempts.succeed(action, now=now)
        gang = self._seen.find_of(action.uid)
        if isinstance(action, ReleaseHelper) and gang is not None:
            gang.asleep.discard(action.uid)

    def fail(self, action: Action, *, now: float) -> None:
        """An action failed, or its result is unknown; it is retried."""
        self._attempts.fail(action, now=now)
        self._in_flight.leave(action.uid)

    # -- steps

    def step(self, *, now: float) -> StepResult:
        """Update the gangs that have changed, and plan the first gangs that wait."""
        step = StepResult()
        self._waiting.wake_needing(self._nodes.take_grown())
        self._handle_due(now)
        self._settle_changed(step, now=now)
        self.reservations.gather()
        self._bounds.correct(now=now)
        self._plan_first(step, now=now)
        self.reservations.update(step)
        step.notices = self._notices.take(now)
        return step

    def _plan_first(self, step: StepResult, *, now: float) -> None:
        for _ in range(_GANGS_PER_STEP):
            key = self._waiting.first()
            if key is None or self._in_flight.is_crowded:
                return
            gang = self._seen[key]
            if key != self._prepared and (request := unready_request(gang, self._cells)):
                self._prepared, step.to_prepare = key, request
                break
            self._prepared = None
            self._plan(gang, now=now)
            self._settle_changed(step, now=now)
            if gang.victims:
                break  # such a decision takes as long as many others
        step.has_more = self._waiting.first() is not None

    def _handle_due(self, now: float) -> None:
        """Give up places that stay refused, retry failed actions, renew leases."""
        self._in_flight.drop_slow(now)
        self._places.handle_due(now)
        for key in self._waiting.take_resumed(now):
            self._seen.note_change(key)
        for uid in self._contended.update():
            self._note_change_of(uid)
        for action in self._attempts.due(now):
            self._note_wanted_again(action)
        if self._seen.is_renewal_due(now):
            for key in dict.fromkeys([*self._seen.unfinished, *self.held]):
                self._cells.renew(key, now=now)

    def _note_wanted_again(self, action: Action) -> None:
        """Mark the gang that needs an action as changed: of an eviction, the preemptor."""
        if isinstance(action, EvictPod):
            self._seen.note_change(action.preemptor)
        else:
            self._note_change_of(action.uid)

    def _note_change_of(self, uid: PodUid) -> None:
        gang = self._seen.find_of(uid)
        if gang is not None:
            self._seen.note_change(gang.key)

    def _settle_changed(self, step: StepResult, *, now: float) -> None:
        while changed := self._seen.take_changed() or self._in_flight.next_gangs():
            for key in changed:
                gang = self._seen.find(key)
                if gang is not None:
                    self._settle(gang, step, now=now)

    def _settle(self, gang: QueuedGang, step: StepResult, *, now: float) -> None:
        """Bring a gang into the state that its pods imply, and start the actions that it needs."""
        if not still_preempts(gang, self._cells):
            gang.victims = ()
        settle_form(gang, self._cells)
        self._seen.note_unfinished(gang, now=now)
        self.held.review(gang)
        for uid in self.held.refused_members(gang):
            self._refused.refuse(uid, now=now)
        if not gang.pods:
            self._forget(gang)
        elif not gang.is_complete:
            self._take_back(gang)
            self._notices.note_incomplete(gang, now=now)
            self._begin(void_nominations(gang, self._cells), step, now=now)
        else:
            self._notices.note_complete(gang)
            gang.forget_refused_nodes(now)
            if unplaced(gang, self._cells) and gang.resumes_at > now:
                self._waiting.pause(gang.key, until=gang.resumes_at)
            elif unplaced(gang, self._cells):
                self.reservations.gaps.classify(gang)
                self._waiting.put(gang.key, shape_now(gang, self._cells), self.ranking.of(gang))
            else:
                self._waiting.remove(gang.key)
                self.ranking.start(gang.key)
                self.reservations.note_placed(gang.key)
                self._plan_surplus_alone(gang)
                self._notices.note_placed(gang)
            self._act(gang, step, now=now)

    def _plan_surplus_alone(self, gang: QueuedGang) -> None:
        """Make each member beyond the gang's size a gang of its own, once the gang has places."""
        for pod in gang.surplus():
            if pod.alone is not None:
                self.see(replace(pod, request=pod.alone, gang_size=1, alone=None))

    def _forget_gone(self, key: GangKey) -> None:
        """Forget a gang without pods at once: a standby makes no steps and sees many gangs."""
        gang = self._seen.find(key)
        if gang is not None and not gang.pods:
            self._forget(gang)

    def _forget(self, gang: QueuedGang) -> None:
        self.held.give_up(gang.key, GivenUp.PLACE_LOST)
        self._notices.forget(gang.key)
        self.reservations.note_gone(gang.key)
        self._waiting.remove(gang.key)
        self._in_flight.cancel(gang.key)
        self.ranking.forget(gang.key)
        self._seen.forget(gang.key)

    def _take_back(self, gang: QueuedGang) -> None:
        """Withdraw the places of a gang that has lost members, unless some member is released.

        Released members keep their places until the lease expires: one may be bound at this moment,
        and replacements may be created in time.
        """
        self._waiting.remove(gang.key)
        gang.victims = ()
        if not any(map(self._is_in_use, gang.pods.values())):
            self._places.withdraw_all(gang)

    def _is_in_use(self, pod: QueuedPod) -> bool:
        is_written_to = self._attempts.is_under_way(pod.uid)
        return pod.is_released or is_written_to or is_bound(pod, self._cells)

    # -- planning

    def _plan(self, gang: QueuedGang, *, now: float) -> None:
        """Find places for the members that have none."""
        gang.waits_since = -inf
        disagreement = gang.disagreement()
        if disagreement is not None:
            self._refuse(gang, disagreement)
            return
        decisions = decide_forms(
            gang, self.reservations.gaps, cells=self._cells, nodes=self._nodes, now=now
        )
        gang.victims = ()
        refused = refusal(decisions)
        if refused is not None and (gang.starts_whole or is_too_few(gang, self._cells)):
            placed = (one for one in decisions if isinstance(one, Place))
            self._places.withdraw(*(one.request.member for one in placed))
        match refused:
            case None:
                pass
            case Preempt(victims=victims) as last:
                # A gang that may not preempt only learns which gangs it waits for.
                gang.victims = victims if gang.first.may_preempt else ()
                gang.has_reserved = self._cells.is_preempting(gang.key)
                self._refuse(gang, last)
                self._places.unseat_unbound(gang.victims)
            case Wait() | Reject() as last:
                gang.shorten_refusals(now=now)
                self._refuse(gang, last)
        self._seen.note_change(gang.key)

    def _refuse(self, gang: QueuedGang, decision: Wait | Reject | Preempt) -> None:
        # Its shape is new: a gang that preempts, or whose members disagree, is like no other.
        settle_form(gang, self._cells)
        self._waiting.put(gang.key, shape_now(gang, self._cells), self.ranking.of(gang))
        self._waiting.refuse(gang.key, lack_of(decision))
        waiting = unplaced(gang, self._cells) or gang.lowest_first()
        self._notices.waits(gang, decision.reason, waiting=waiting)

    # -- actions

    def _act(self, gang: QueuedGang, step: StepResult, *, now: float) -> None:
        actions = wanted_actions(gang, self._cells, self._contended)
        if not has_release(actions):
            self._in_flight.cancel(gang.key)
        elif not self._in_flight.admits(gang.key, gang.pods):
            return
        self._begin(actions, step, now=now)

    def _begin(self, actions: Iterable[Action], step: StepResult, *, now: float) -> None:
        for action in actions:
            if self._attempts.may_begin(action, now=now):
                self._attempts.begin(action)
                step.actions.append(action)
                if has_release([action]):
                    self._in_flight.enter(action.uid, now=now)
