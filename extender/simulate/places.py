"""What the planner would decide about a pod and the rest of its gang, if they were created now."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from extender.cells.answers import reject
from extender.cells.budget import LARGEST_GANG
from extender.cells.model import Decision, MemberRequest, Reason, ReasonCode
from extender.cells.views.listings import Stepwise
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import PodNeeds
from extender.planning.cluster_cells import ClusterCells
from extender.planning.queued_pods import QueuedPods
from extender.queue.alternatives.forms import preview_forms
from extender.queue.member_places import unready_request
from extender.queue.notices import full_gang
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import Guards
from extender.queue.variants.trials import Assume
from kube.read.managed_pod import ManagedPod
from kube.read.pod_resources import read_node_pod
from policy.errors import RequestError
from policy.submission import NodeName, PodUid
from service.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedGang:
    """A gang that does not exist, as the planner would see it."""

    gang: QueuedGang
    pod: ManagedPod
    """The pod that was given."""
    assume: Assume
    """Lets nodes know its members for a moment."""


ReasonToHold = Callable[[ManagedPod], Reason | None]
"""What a gated pod waits for before it can be planned."""


class PlaceSimulator:
    """Decides about gangs as the planner does; changes nothing."""

    def __init__(
        self,
        *,
        cells: ClusterCells,
        pods: PodSink,
        needs: PodNeeds,
        queued: QueuedPods,
        reason_to_hold: ReasonToHold,
        reservations: Guards,
        clock: Clock,
    ) -> None:
        self._cells = cells
        self._pods = pods
        self._needs = needs
        self._queued = queued
        self._reason_to_hold = reason_to_hold
        self._reservations = reservations
        self._clock = clock

    def place_stepwise(
        self, stored: Mapping[str, Any], *, nodes: Collection[NodeName] | None
    ) -> Stepwise[Decision | Reason]:
        """Return where a gang would go, or why it would wait.

        Members that do not exist are assumed to be like this pod. With `nodes`, others are not
        used. Raises RequestError if the pod cannot be planned.

        Only what a decision needs is prepared in steps: the decision is about one moment.
        """
        pod = self._pods.read(dict(stored))
        if pod is None:
            raise RequestError.at("pod", "asks for no leaf cells")
        pod = replace(pod, created=self._clock.now().timestamp())
        reason = self._reason_to_hold(pod)
        if reason is not None:
            return reason
        queued = self._queued(pod)
        if queued.gang_size > LARGEST_GANG:  # before all its members are imagined
            told = {"size": queued.gang_size, "limit": LARGEST_GANG}
            return reject(queued.request, ReasonCode.TOO_LARGE, **told)
        unready = self._find_unready(pod)
        if unready is not None:
            yield from self._cells.cluster.prepare_stepwise(unready)
        return self._place(pod, stored, nodes)

    def imagine(self, stored: Mapping[str, Any]) -> ImaginedGang | None:
        """Return the gang of a pod for which a place was sought; None if the gang is full."""
        pod = self._pods.read(dict(stored))
        if pod is None:
            return None
        pod = replace(pod, created=self._clock.now().timestamp())
        uids = self._uids(pod)
        known = dict.fromkeys(uids, read_node_pod(stored))

        def assume() -> AbstractContextManager[None]:
            return self._needs.nodes.assuming(known)

        try:
            with assume():
                gang = self._gather(pod, uids)
        finally:
            self._needs.forget(pod.uid)
        is_full = gang.pods[pod.uid] in gang.surplus()
        return None if is_full else ImaginedGang(gang=gang, pod=pod, assume=assume)

    def _find_unready(self, pod: ManagedPod) -> MemberRequest | None:
        """Return the request that is decided for the gang, if that takes long to prepare."""
        try:
            return unready_request(self._gather(pod, self._uids(pod)), self._cells)
        finally:
            self._needs.forget(pod.uid)

    def _place(
        self, pod: ManagedPod, stored: Mapping[str, Any], nodes: Collection[NodeName] | None
    ) -> Decision | Reason:
        uids = self._uids(pod)
        try:
            with self._needs.nodes.assuming(dict.fromkeys(uids, read_node_pod(stored))):
                return self._decide(self._gather(pod, uids), pod.uid, nodes)
        finally:
            self._needs.forget(pod.uid)

    def _uids(self, pod: ManagedPod) -> list[PodUid]:
        """Return a UID for each member that may be missing, that of the pod itself first."""
        missing = self._queued(pod).gang_size - 1
        return [pod.uid, *(PodUid(f"{pod.uid}-{number:06}") for number in range(missing))]

    def _gather(self, pod: ManagedPod, uids: Sequence[PodUid]) -> QueuedGang:
        """Return the gang with the members that exist, and others that are like this pod."""
        first = self._queued(pod)
        finished = {first.workload: self._pods.finished.of_gang(pod)}
        gang = QueuedGang(key=first.request.gang, finished=finished)
        gang.put(first)
        for member in (*self._pods.of_gang(gang.key), *self._pods.helpers.of_gang(gang.key)):
            if not member.is_deleting:
                gang.put(self._queued(member))
        missing = gang.left.created_first - len(gang.pods)  # like the first, so it stays true
        for uid in uids[1 : 1 + max(0, missing)]:
            gang.put(replace(first, request=replace(first.request, member=uid)))
        return gang

    def _decide(
        self, gang: QueuedGang, uid: PodUid, nodes: Collection[NodeName] | None
    ) -> Decision | Reason:
        pod = gang.pods[uid]
        if pod in gang.surplus():
            if pod.alone is None:
                return full_gang(gang, pod)
            gang = QueuedGang(key=pod.alone.gang)
            gang.put(replace(pod, request=pod.alone, gang_size=1, alone=None))
        if nodes is not None:
            others = (name for name in self._cells.cluster.nodes if name not in nodes)
            gang.refused_nodes = dict.fromkeys(others, inf)
        now = self._clock.monotonic()
        return preview_forms(
            gang, self._reservations, cells=self._cells, nodes=self._needs.nodes, now=now
        )
