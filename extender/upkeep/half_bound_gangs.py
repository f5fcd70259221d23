"""Gangs that were half bound when the previous leader stopped: completed, or ended.

The leases of members that were not bound yet ended with that leader. They are granted again before
any verb is answered, so that no other gang can take the cells. A gang that cannot be completed, for
example because a node failed meanwhile, would hold its cells for nothing: it is ended after some
minutes, and its controller starts it again.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final, NoReturn

from extender.cells.model import MemberRequest
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import NodesFor
from extender.feeds.requests import ToRequest, members_left
from extender.outcomes.evictions import Evictions
from extender.outcomes.outcomes import Outcomes
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import GangKey, PodUid
from service.clock import Clock
from state.log.records import RowKind

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 5.0


class HalfBoundGangs:
    """Finds half-bound gangs during recovery, and follows them until they are complete or ended."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        to_request: ToRequest,
        nodes_for: NodesFor,
        evictions: Evictions,
        outcomes: Outcomes,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._to_request = to_request
        self._nodes_for = nodes_for
        self._evictions = evictions
        self._outcomes = outcomes
        self._clock = clock
        self._open: dict[GangKey, float] = {}
        """When each gang is ended, unless it is complete by then."""
        self._missing_members: dict[GangKey, dict[PodUid, None]] = {}
        """The members of each gang that were missing. Others may have finished before."""

    def complete(self) -> None:
        """Place all members that are missing, as far as there is room."""
        now = self._clock.monotonic()
        for request, pod in self._missing():
            context = DecisionContext(kind=RowKind.PLACEMENT, now=now, pod=str(request.gang))
            nodes = self._nodes_for(pod)
            decision = self._cluster.decide(request, candidate_nodes=nodes, context=context)
            # Its pod is not said to wait: kube-scheduler has offered no nodes for it yet.
            self._outcomes.decided(decision)
            self._open[request.gang] = now + _PATIENCE_SECONDS
            self._missing_members.setdefault(request.gang, {})[request.member] = None
        if self._open:
            logger.info("found half-bound gangs", extra={"gangs": list(map(str, self._open))})

    async def run(self) -> NoReturn:
        """End the gangs that cannot be completed, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look(now=self._clock.monotonic())

    def look(self, *, now: float) -> None:
        """Forget the gangs that are complete or gone; end those that took too long."""
        for gang, deadline in list(self._open.items()):
            members = [self._pods.get(uid) for uid in self._cluster.members.of_gang(gang)]
            bound = [pod for pod in members if pod is not None and pod.node is not None]
            if not bound or len(bound) >= self._needed(gang) or not self._waits(gang):
                self._close(gang)
            elif now >= deadline:
                self._close(gang)
                why = (
                    f"gang {gang} was half bound when the leader changed, and only {len(bound)} of "
                    f"{self._needed(gang)} members found a place since; its pods end so that their "
                    "controller can start the gang again"
                )
                for pod in bound:
                    self._evictions.start(pod, why=why, is_wanted=lambda: True)

    def _close(self, gang: GangKey) -> None:
        del self._open[gang], self._missing_members[gang]

    def _waits(self, gang: GangKey) -> bool:
        """Whether a member that was missing exists, and still is not bound."""
        missing = map(self._pods.get, self._missing_members[gang])
        return any(pod is not None and pod.node is None for pod in missing)

    def _missing(self) -> list[tuple[MemberRequest, ManagedPod]]:
        """Return the requests of unbound members whose gang runs in part, in a defined order."""
        found: list[tuple[MemberRequest, ManagedPod]] = []
        for pod in sorted(self._pods, key=lambda pod: (pod.namespace, pod.name)):
            if pod.node is not None or pod.is_gated or self._cluster.has_place(pod.uid):
                continue
            try:
                request = self._to_request(pod)
            except RequestError:
                continue
            if self._cluster.members.of_gang(request.gang):
                found.append((self._with_known_sizes(request), pod))
        return found

    def _with_known_sizes(self, request: MemberRequest) -> MemberRequest:
        """State the sizes of the gang as the members that run do."""
        known = self._cluster.known_sizes(request.gang)
        if known is None or request.leaf_count not in known.leaf_counts:
            return request
        return replace(request, gang_leaf_counts=known.leaf_counts)

    def _needed(self, gang: GangKey) -> int:
        """Return how many members the gang needs, by their requests: labels may have changed."""
        members = self._cluster.members.items_of([gang])
        requests = [member.request for _, member in members]
        pods = [pod for pod in map(self._pods.get, self._cluster.members.of_gang(gang)) if pod]
        if not pods:
            return 0
        found = (self._pods.finished.of_gang(pod) for pod in pods)
        finished = max(found, key=lambda counts: sum(counts.values()))
        return max(
            members_left(pods, size=len(one.gang_leaf_counts), finished=finished).least(
                one.gang_min
            )
            for one in requests
        )
