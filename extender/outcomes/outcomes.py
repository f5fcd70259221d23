"""Reports every decision of the planner and of kube-scheduler's verbs.

It counts decisions and preemptions, keeps the list of gangs and pods that wait, and writes Events.
So metrics, `/v1/waiting`, Events and explanations agree.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from extender.cells.model import OPPORTUNISTIC, Decision, Place, Preempt, Reason, ReasonCode
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import single_gang
from extender.metrics import ExtenderMetrics
from extender.outcomes.gang_ends import GangEnds
from extender.outcomes.pod_events import PodEvents
from extender.outcomes.waiting_list import RefusedPod, WaitingEntry, WaitingList
from extender.outcomes.waiting_notes import WaitingNotes
from extender.queue.held_bindings import Verdict
from kube.api.pod_ender import Ended
from kube.read.managed_pod import ManagedPod
from policy.quotas.charge import Charge
from policy.submission import GangKey, NodeName
from policy.wording import listing
from service.clock import Clock
from service.memory import BoundedMap
from state.log.records import RowKind

logger = logging.getLogger(__name__)

_MOST_DOWNGRADES: Final = 10_000


class EndedBy(StrEnum):
    """The program that ends the victims of a preemption."""

    CELLGATE = "cellgate"
    KUBE_SCHEDULER = "kube-scheduler"


class Outcomes:
    """Records what was decided, and informs the owners of pods when that changes."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        events: PodEvents,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self.on_ended: list[Callable[[ManagedPod, str], None]] = []
        """Callbacks that run with each pod that Cellgate ends for another gang, and why."""
        self.on_victims: list[Callable[[Preempt], None]] = []
        """Callbacks that run with each preemption whose victims are ended now."""
        self.downgrades: BoundedMap[GangKey, datetime] = BoundedMap(_MOST_DOWNGRADES)
        """When gangs were downgraded, those of them that still are and others."""
        self.waiting = WaitingList()
        self.notes = WaitingNotes(
            waiting=self.waiting,
            pods=pods,
            has_place=cluster.has_place,
            events=events,
            metrics=metrics,
            clock=clock,
        )
        self.ends = GangEnds(cluster=cluster, events=events, clock=clock)
        pods.on_end.append(self._forget)
        pods.helpers.on_end.append(self._forget)
        pods.on_appear.append(self._note_bound)

    # -- decisions

    def decided(self, decision: Decision, *, ended_by: EndedBy | None = None) -> None:
        """Record a decision that was applied; call it before anything else changes.

        `ended_by` is the program that ends victims now. A preemption counts once, when its cells
        are reserved: the same decision is made again until the victims have ended.
        """
        self._metrics.count_decision(decision)
        if isinstance(decision, Place):
            for gang in decision.downgraded:
                self.gang_downgraded(gang, by=decision.request.gang)
        elif isinstance(decision, Preempt) and decision.seats and ended_by is not None:
            cause = "borrowed" if self._are_borrowers(decision.victims) else "priority"
            self._metrics.preemptions.labels(ended_by, cause).inc()
            for tell in self.on_victims:
                tell(decision)

    def gangs_moved(self, decision: Preempt) -> None:
        """Gangs are ended so that one with a reservation starts earlier; they fit elsewhere."""
        gang, moved = decision.request.gang, [str(victim) for victim in decision.victims]
        self._metrics.preemptions.labels(EndedBy.CELLGATE, "moved").inc()
        why = f"gang {gang} starts earlier if {listing(moved)} run elsewhere"
        details = {"victims": moved, "nodes": list(decision.nodes)}
        self._cluster.journal.note(RowKind.PREEMPTION, str(gang), "moves", why, details=details)
        for tell in self.on_victims:
            tell(decision)

    def gang_downgraded(self, gang: GangKey, *, by: GangKey | None = None) -> None:
        """A gang runs on without a guarantee: by another gang, or because promises changed."""
        self.downgrades[gang] = self._clock.now()
        self._events.downgraded(self._members(gang), by=by)

    def gang_promoted(self, gang: GangKey) -> None:
        """A gang that was downgraded has its guarantee again."""
        self._events.promoted(self._members(gang))

    def _members(self, gang: GangKey) -> list[ManagedPod]:
        members = map(self._pods.get, self._cluster.members.of_gang(gang))
        return [pod for pod in members if pod is not None]

    def _are_borrowers(self, victims: Sequence[GangKey]) -> bool:
        """Whether all victims are opportunistic: a VC takes back cells that it lent."""
        members = self._cluster.members.items_of(victims)
        return all(member.request.priority == OPPORTUNISTIC for _, member in members)

    # -- gangs that the planner places

    def gang_waits(self, gang: GangKey, pod: ManagedPod, reason: Reason) -> None:
        """A gang waits; `pod` is the member that carries the Event. New numbers make no Event."""
        entry = WaitingEntry(gang=gang, pod=pod, reason=reason, since=self._clock.now())
        before = self.waiting.gangs.get(gang)
        if before is not None and self._cluster.has_place(before.pod.uid):
            del self.waiting.gangs[gang]  # a part of the gang starts: those that wait are told
        if self.waiting.put_gang(entry):
            self.notes.gang_waits(entry)
        elif before is not None and before.reason.text != reason.text:
            self.notes.renew(before, reason)

    def gang_resumed(self, gang: GangKey) -> None:
        """A gang does not wait any more, or not for what was reported: it may have its places."""
        self._announce_placed(self.waiting.gangs.pop(gang, None))

    def hold_ended(
        self, gang: GangKey, code: ReasonCode, *, still: tuple[ManagedPod, Reason] | None
    ) -> None:
        """A pod of a gang is not held any more; `still` is another one that is, and why."""
        entry = self.waiting.gangs.get(gang)
        if entry is None or entry.reason.code is not code:
            return  # the planner has reported why the gang waits
        if still is None:
            self.gang_resumed(gang)
        else:
            entry.pod, entry.reason = still
            self.notes.refresh(entry)

    def hold_lifted(self, gang: GangKey, why: str) -> None:
        """A user's hold of a gang has ended by itself; the webhook records all else of holds."""
        self._cluster.journal.note(RowKind.HOLD, str(gang), "released", why)
        logger.info("hold lifted", extra={"gang": str(gang), "why": why})

    def binding_given_up(self, verdict: Verdict) -> None:
        """The members of a gang that were held at binding are not bound."""
        if verdict.given_up is None or verdict.reason is None:
            return
        self._metrics.given_up.labels(verdict.given_up).inc()
        logger.info(
            "bindings given up", extra={"gang": str(verdict.gang), "cause": verdict.given_up}
        )
        self._cluster.journal.note(RowKind.BIND, str(verdict.gang), "given-up", verdict.reason.text)

    # -- pods that kube-scheduler asks about

    def pod_decided(
        self,
        pod: ManagedPod,
        decision: Decision,
        *,
        offered: Collection[NodeName],
        ended_by: EndedBy | None = None,
    ) -> None:
        """Record a decision like `decided`, and that its pod has its place or waits."""
        self.decided(decision, ended_by=ended_by)
        if isinstance(decision, Place):
            # kube-scheduler learns of a place from filter alone: otherwise the pod must be woken.
            if ended_by is None:
                self._announce_placed(self.waiting.pods.pop(pod.uid, None))
            return
        before = self.waiting.pods.get(pod.uid)
        if before is not None and len(offered) == 1 < len(before.offered):
            # kube-scheduler first offers only the node that it has nominated: what is wrong with
            # that node is no news about a pod that waits already, unless it can have no other.
            return
        victims = decision.victims if isinstance(decision, Preempt) else ()
        entry = RefusedPod(
            gang=decision.request.gang,
            pod=pod,
            reason=decision.reason,
            since=self._clock.now(),
            offered=list(offered),
            asked=self._clock.monotonic(),
            version=self._cluster.version,
            victims=victims,
            asks_to_preempt=bool(victims) and ended_by is None and pod.may_preempt,
        )
        if self.waiting.put_pod(entry):
            self._events.waiting(entry.pod, entry.reason.text)

    # -- gangs beyond quota

    def gang_raised(self, pod: ManagedPod, charge: Charge, *, why: str) -> None:
        """A gang is charged in a higher class; `pod` is the member that carries the Event."""
        self._metrics.raised.inc()
        self._events.raised(pod, why=why)
        details = {
            "decisionId": str(charge.decision),
            "user": charge.user,
            "group": charge.group,
            "vc": charge.vc,
            "class": charge.class_name,
            "raisedFrom": charge.raised_from,
            "leafCount": charge.leaf_count,
        }
        subject = str(pod.gang.key)
        self._cluster.journal.note(RowKind.ADMISSION, subject, "raised", why, details=details)
        logger.info("gang raised", extra={"gang": subject, "why": why})

    # -- pods that end for the sake of other gangs

    def pod_warned(self, pod: ManagedPod, *, why: str, seconds: float) -> None:
        """A pod will end after the grace that the admins give; the log has one row for a gang."""
        self._events.warned(pod, why=why, seconds=seconds)
        self.ends.warned(pod, why=why, seconds=seconds)

    def pod_ended(self, pod: ManagedPod, ended: Ended, *, why: str) -> None:
        """A pod is terminating; not reported if its owner or kube-scheduler ended it."""
        if ended is not Ended.BY_OTHERS:
            self._tell_ended(pod, why)
            self._events.preempted(pod, why=why)
            self.ends.evicted(pod, why=why, is_new=ended is Ended.NOW)
        self._count_ended(pod, ended, why)

    def pod_suspended(self, pod: ManagedPod, *, why: str) -> None:
        """A pod ends because its workload was suspended, which is reported by itself."""
        self._tell_ended(pod, why)
        self._events.preempted(pod, why=why)
        self._count_ended(pod, Ended.NOW, why)

    def _tell_ended(self, pod: ManagedPod, why: str) -> None:
        for tell in self.on_ended:
            tell(pod, why)

    def _count_ended(self, pod: ManagedPod, ended: Ended, why: str) -> None:
        if ended is Ended.NOW:
            self._metrics.victims.inc()
            logger.info("pod ended", extra={"pod_uid": pod.uid, "why": why})

    # -- what ends an entry

    def _announce_placed(self, entry: WaitingEntry | None) -> None:
        member = self._cluster.members.get(entry.pod.uid) if entry is not None else None
        if entry is not None and member is not None:
            self._events.placed(entry.pod, member.placement)

    def _note_bound(self, pod: ManagedPod) -> None:
        """A bound pod does not wait, whichever program bound it."""
        if pod.node is not None:
            self.waiting.pods.pop(pod.uid, None)

    def _forget(self, pod: ManagedPod) -> None:
        """A pod ended or left its gang: another member that waits carries the gang's entry."""
        self.ends.remember(pod)
        self.waiting.pods.pop(pod.uid, None)
        for gang in (pod.gang.key, single_gang(pod)):
            entry = self.waiting.gangs.get(gang)
            if entry is None or entry.pod.uid != pod.uid:
                continue
            left = self._pods.of_gang(gang)
            heir = next((other for other in left if other.node is None), None)
            if heir is None:
                self.waiting.gangs.pop(gang, None)
            else:
                entry.pod = heir
