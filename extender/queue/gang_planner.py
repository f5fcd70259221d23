"""The planner: whole gangs placed ahead of kube-scheduler.

It is a step function over what is seen. `see` and `lose` tell it about pods, `wake` about cells
that came free; `step` decides about the gangs that wait and returns what is to be done; `succeed`
and `fail` report what became of it. Events may be lost for a while, repeated or late: every look
starts from what is seen now, and nothing is remembered that a look could tell.

    gathering ──enough members──▶ waiting ──fits──▶ leased ──each released, bound──▶ runs
        ▲                          │  ▲ │                │
        │                          │  │ └─needs victims─▶ preempting ──they ended──▶ leased
        └──── members vanished ────┘  └── lease not used in time, node refused ──┘
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from extender.cells.model import Preempt, Reason, ReasonCode, Reject, Wait
from extender.queue.attempts import Attempts
from extender.queue.contended_nodes import ContendedNodes
from extender.queue.in_flight import Way
from extender.queue.member_places import decide_unplaced, refusal, unplaced
from extender.queue.model import Action, End, Nominate, QueuedPod, Release, Step, Tell
from extender.queue.order import Order, by_priority_and_age
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import PriorityOf, QueuedGang
from extender.queue.reasons import gathering, mismatch
from extender.queue.refused_places import RefusedPlaces
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import Shape, Waiting, shape_of
from extender.queue.wanted_actions import (
    is_bound,
    is_end_wanted,
    still_preempts,
    void_nominations,
    wanted_actions,
)
from policy.submission import GangKey, LeafType, NodeName, PodUid

_RENEW_SECONDS = 5.0
_GATHERING_SECONDS = 5.0
_GANGS_PER_STEP = 8


class GangPlanner:
    """Plans the gangs whose pods our gate holds. Changes cells, and nothing else."""

    def __init__(self, cells: Cells, nodes: Nodes, *, order: Order = by_priority_and_age) -> None:
        self._cells = cells
        self._nodes = nodes
        self._order = order
        self._seen = SeenGangs()
        self._waiting = Waiting()
        self._attempts = Attempts()
        self._refused = RefusedPlaces()
        self._contended = ContendedNodes(cells)
        self._way = Way()
        self._unfinished: dict[GangKey, None] = {}
        """Gangs that run by half, and gangs whose victims are ending."""
        self._gathering: dict[GangKey, float] = {}
        """Gangs with too few members, and since when."""
        self._renew_at = 0.0

    # -- what is seen

    def knows(self, uid: PodUid) -> bool:
        """Whether a pod is one of ours to plan."""
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

    def rerank(self, priority_of: PriorityOf) -> None:
        """Pods have other priorities now."""
        for pod in [pod for gang in self._seen for pod in gang.reranked(priority_of)]:
            self.see(pod)

    def lose(self, uid: PodUid, *, leaf_type: LeafType | None = None) -> None:
        """A pod, ours or not, ended or is gone; its leaf cells were of that type."""
        gang = self._seen.find_of(uid)
        self._seen.drop(uid)
        if gang is not None:
            self._forget_gone(gang.key)
        self._settle_member(uid)
        self.wake(leaf_type)

    def wake(self, leaf_type: LeafType | None = None) -> None:
        """Leaf cells of a type came free, joined or changed; None: of any."""
        self._waiting.wake(leaf_type)

    def expire(self, gangs: Sequence[GangKey]) -> None:
        """The leases of these gangs ended: each had its chance, and waits behind its equals now.

        It may lack more than leaf cells, and would have them for nothing, again and again.
        """
        for key in gangs:
            gang = self._seen.find(key)
            if gang is not None and not self._way.is_held_back(key):
                self._seen.send_back(gang)
        self.unseat(gangs)

    def unseat(self, gangs: Sequence[GangKey]) -> None:
        """Members of these gangs that are not bound have lost their places."""
        for key in gangs:
            gang = self._seen.find(key)
            for uid in gang.pods if gang is not None else ():
                self._way.leave(uid)
            self._seen.note_change(key)
            self._waiting.wake()

    def give_up_on(self, victim: GangKey) -> None:
        """A victim takes too long to end: whoever waits for it looks again, perhaps at others."""
        for gang in [self._seen[key] for key in self._unfinished]:
            if victim in gang.victims:
                self._withdraw(*(uid for uid in gang.pods if not self._cells.is_bound(uid)))
                self._seen.note_change(gang.key)
                self._waiting.wake()

    def refuse_node(self, uid: PodUid, *, now: float) -> None:
        """kube-scheduler would not put a pod on the node that is leased for it."""
        if self._cells.has_place(uid):
            self._refused.refuse(uid, now=now)

    def lose_node(self, node: NodeName) -> None:
        """A node left, or may not be used for now: whoever was to go there looks for another."""
        for uid in self._seen.pods:
            placement = None if self._cells.is_bound(uid) else self._cells.placement(uid)
            if placement is not None and placement.node == node:
                self._refused.lose_node(uid)

    def _settle_member(self, uid: PodUid) -> None:
        self._attempts.forget(uid)
        self._refused.forget(uid)
        self._contended.forget(uid)
        self._way.leave(uid)

    # -- what became of actions

    def is_wanted(self, action: Action) -> bool:
        """Whether an action that was not begun yet, or done by half, still makes sense."""
        match action:
            case End(preemptor=preemptor):
                return is_end_wanted(action, self._cells, preemptor=self._seen.find(preemptor))
            case Release(uid=uid, placement=placement):
                return self._cells.placement(uid) == placement
            case Nominate(uid=uid, node=node):
                gang = self._seen.find_of(uid)
                return gang is not None and node == self._contended.nomination(gang.pods[uid])
            case _:
                assert_never(action)

    def succeed(self, action: Action, *, now: float) -> None:
        """An action was done."""
        self._attempts.succeed(action, now=now)

    def fail(self, action: Action, *, now: float) -> None:
        """An action was not done, or nobody knows; it is tried again."""
        self._attempts.fail(action, now=now)
        self._way.leave(action.uid)  # one that is not released is in nobody's way

    # -- deciding

    def step(self, *, now: float) -> Step:
        """Decide about what changed, and about the first gangs that wait."""
        step = Step()
        self._keep_time(now)
        self._settle_changed(step, now=now)
        self._tell_gathering(step, now=now)
        for _ in range(_GANGS_PER_STEP):
            key = self._waiting.first()
            if key is None or self._way.is_crowded:
                return step
            self._plan(self._seen[key], step, now=now)
            self._settle_changed(step, now=now)
        step.has_more = self._waiting.first() is not None
        return step

    def _keep_time(self, now: float) -> None:
        """Do what is due: refusals stand, leases are renewed, failures tried again."""
        self._way.clear(now)
        for uid, is_refused in self._refused.take_due(now).items():
            self._give_up_place(uid, is_refused=is_refused, now=now)
        for uid in self._contended.look():
            self._note_change_of(uid)
        for action in self._attempts.due(now):
            self._note_wanted_again(action)
        if now >= self._renew_at:
            self._renew_at = now + _RENEW_SECONDS
            self._renew(now)

    def _note_wanted_again(self, action: Action) -> None:
        """Look at the gang that wanted it: of an end not the victim's, whose pod it is about."""
        if isinstance(action, End):
            self._seen.note_change(action.preemptor)
        else:
            self._note_change_of(action.uid)

    def _note_change_of(self, uid: PodUid) -> None:
        gang = self._seen.find_of(uid)
        if gang is not None:
            self._seen.note_change(gang.key)

    def _renew(self, now: float) -> None:
        """Keep what gangs need until they are whole: a half gang works for nobody, and victims
        that take their time must not have ended in vain."""
        for key in self._unfinished:
            self._cells.renew(key, now=now)

    def _give_up_place(self, uid: PodUid, *, is_refused: bool, now: float) -> None:
        """Look for another place without that node; for the whole gang, if none of it runs yet."""
        placement, gang = self._cells.placement(uid), self._seen.find_of(uid)
        if placement is None or gang is None or self._cells.is_bound(uid):
            return
        if is_refused:  # a node that is lost may be used when it is back
            gang.refuse_node(placement.node, now=now)
        has_begun = any(is_bound(pod, self._cells) for pod in gang.pods.values())
        self._withdraw(*([uid] if has_begun else gang.pods))
        self._seen.note_change(gang.key)

    def _withdraw(self, *uids: PodUid) -> None:
        """Give the places of some pods back, and what is reserved for them."""
        for uid in uids:
            had_place = self._cells.has_place(uid)
            self._cells.forget_member(uid)
            self._way.leave(uid)
            self._refused.forget(uid)
            if had_place:
                self._waiting.wake()

    def _settle_changed(self, step: Step, *, now: float) -> None:
        while changed := self._seen.take_changed() or self._way.call_next():
            for key in changed:
                gang = self._seen.find(key)
                if gang is not None:
                    self._settle(gang, step, now=now)

    def _settle(self, gang: QueuedGang, step: Step, *, now: float) -> None:
        """Bring a gang to where it belongs, by what is seen of it."""
        if not still_preempts(gang, self._cells):
            gang.victims = ()
        self._note_unfinished(gang)
        if not gang.pods:
            self._forget(gang)
        elif not gang.is_complete:
            self._take_back(gang)
            self._gathering.setdefault(gang.key, now)
            self._begin(void_nominations(gang, self._cells), step, now=now)
        else:
            self._gathering.pop(gang.key, None)
            gang.forget_refused_nodes(now)
            if unplaced(gang, self._cells):
                self._waiting.put(gang.key, self._shape(gang), self._order(gang.standing()))
                if gang.told is ReasonCode.GATHERING:
                    _tell_resumed(gang, step)
            else:
                self._waiting.remove(gang.key)
                _tell_resumed(gang, step)
                self._send_surplus_alone(gang)
            self._act(gang, step, now=now)

    def _send_surplus_alone(self, gang: QueuedGang) -> None:
        """Let members beyond what a gang needs go by themselves, now that it has its places."""
        for pod in gang.surplus():
            if pod.alone is not None:
                self.see(replace(pod, request=pod.alone, gang_size=1, alone=None))

    def _note_unfinished(self, gang: QueuedGang) -> None:
        runs_by_half = gang.has_begun and any(pod.node is None for pod in gang.pods.values())
        if runs_by_half or gang.victims:
            self._unfinished[gang.key] = None
        else:
            self._unfinished.pop(gang.key, None)

    def _tell_gathering(self, step: Step, *, now: float) -> None:
        """Tell whose gang has been incomplete for a while what is missing."""
        for key, since in list(self._gathering.items()):
            gang = self._seen[key]
            is_told = gang.told is ReasonCode.GATHERING
            if now - since >= _GATHERING_SECONDS and not is_told:
                _tell(gang, gathering(gang), step)

    def _forget_gone(self, key: GangKey) -> None:
        """Keep nothing of a gang without pods: a standby makes no steps, and hears of many."""
        gang = self._seen.find(key)
        if gang is not None and not gang.pods:
            self._forget(gang)

    def _forget(self, gang: QueuedGang) -> None:
        self._gathering.pop(gang.key, None)
        self._unfinished.pop(gang.key, None)
        self._waiting.remove(gang.key)
        self._way.call_off(gang.key)
        self._seen.forget(gang.key)

    def _take_back(self, gang: QueuedGang) -> None:
        """Members vanished: what no released member needs is free again.

        A released member keeps its place until its lease ends: it may be bound at this moment, and
        a replacement of those that vanished may come in time.
        """
        self._waiting.remove(gang.key)
        gang.victims = ()
        if not any(map(self._is_on_its_way, gang.pods.values())):
            self._withdraw(*gang.pods)

    def _is_on_its_way(self, pod: QueuedPod) -> bool:
        is_written_to = self._attempts.is_under_way(pod.uid)
        return pod.is_released or is_written_to or is_bound(pod, self._cells)

    def _shape(self, gang: QueuedGang) -> Shape:
        is_peculiar = gang.has_begun or gang.victims or gang.disagreeing() is not None
        return shape_of(
            gang.first.request,
            [pod.request.leaf_count for pod in unplaced(gang, self._cells)],
            nodes=(gang.node_wishes(), tuple(sorted(gang.refused_nodes))),
            own=gang.key if is_peculiar else None,
            may_preempt=gang.first.may_preempt,
        )

    # -- planning

    def _plan(self, gang: QueuedGang, step: Step, *, now: float) -> None:
        """Look for room for the members that have none."""
        stranger = gang.disagreeing()
        if stranger is not None:
            self._refuse(gang, mismatch(gang, stranger), step)
            return
        decisions = decide_unplaced(gang, self._cells, self._nodes, now=now)
        gang.victims = ()
        refused = refusal(decisions)
        if refused is not None and gang.starts_whole:
            self._withdraw(*(placed.request.member for placed in decisions[:-1]))
        match refused:
            case None:
                pass
            case Preempt(victims=victims) as last:
                # One that may not preempt only hears whom it waits for.
                gang.victims = victims if gang.first.may_preempt else ()
                gang.has_reserved = self._cells.is_preempting(gang.key)
                self._refuse(gang, last, step)
                self._unseat_unbound(gang.victims)
            case Wait() | Reject() as last:
                gang.shorten_refusals(now=now)
                self._refuse(gang, last, step)
        self._seen.note_change(gang.key)

    def _unseat_unbound(self, victims: Sequence[GangKey]) -> None:
        """Victims that do not run yet need not end: they give their places back, and wait."""
        for victim in victims:
            self._seen.note_change(victim)
            for uid in sorted(self._cells.members_of(victim)):
                if not self._cells.is_bound(uid):
                    self._withdraw(uid)

    def _refuse(self, gang: QueuedGang, decision: Wait | Reject | Preempt, step: Step) -> None:
        # A gang that preempts, or that is wrong in itself, says nothing about those like it.
        self._waiting.put(gang.key, self._shape(gang), self._order(gang.standing()))
        self._waiting.refuse(gang.key)
        _tell(gang, decision.reason, step)

    # -- acting

    def _act(self, gang: QueuedGang, step: Step, *, now: float) -> None:
        actions = wanted_actions(gang, self._cells, self._contended)
        if not any(isinstance(action, Release) for action in actions):
            self._way.call_off(gang.key)
        elif not self._way.lets_go(gang.key, gang.pods):
            return
        self._begin(actions, step, now=now)

    def _begin(self, actions: Iterable[Action], step: Step, *, now: float) -> None:
        for action in actions:
            if self._attempts.may_begin(action, now=now):
                self._attempts.begin(action)
                step.actions.append(action)
                if isinstance(action, Release):
                    self._way.enter(action.uid, now=now)


def _tell(gang: QueuedGang, reason: Reason, step: Step) -> None:
    """Tell why a gang waits, if it is for another reason than before."""
    if gang.told != reason.code:
        gang.told = reason.code
        step.news[gang.key] = Tell(uid=gang.first.uid, reason=reason)


def _tell_resumed(gang: QueuedGang, step: Step) -> None:
    """Tell that a gang does not wait any more for the reason that was told last."""
    if gang.told is not None:
        gang.told = None
        step.news[gang.key] = None
