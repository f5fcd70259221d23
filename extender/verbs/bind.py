"""Bind: one API call that puts a pod on its node, with its placement.

Bindings are concurrent: no lock is held while the API server answers.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from extender.cells.model import PlacedMember
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.leader_role import LeaderRole
from extender.metrics import ExtenderMetrics
from extender.planning.pending_writes import PendingWrites
from extender.verbs import wire
from kube.api.binder import PodRef, is_unknown
from kube.placement_annotations import placement_annotations
from policy.errors import BackendError, RequestError
from policy.placement import Placement
from policy.submission import PodUid
from service.clock import Clock
from state.log.records import RowKind

logger = logging.getLogger(__name__)


class BindPods(Protocol):
    """What bind needs of Kubernetes."""

    async def bind(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        """Put the pod on the node, with the annotations; BackendError if that failed."""


class BindVerb:
    """Answers bind."""

    def __init__(
        self,
        *,
        leading: LeaderRole,
        cluster: Cluster,
        pods: PodSink,
        binder: BindPods,
        pending: PendingWrites,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._leading = leading
        self._pending = pending
        self._cluster = cluster
        self._pods = pods
        self._binder = binder
        self._metrics = metrics
        self._clock = clock
        self.under_way: Counter[PodUid] = Counter()
        """Pods that are being bound at this moment, perhaps by several callers."""

    async def bind(self, arguments: wire.BindArguments) -> dict[str, Any]:
        """Bind the pod to the node that was chosen for it, and to no other."""
        began = self._clock.monotonic()
        await self._pending.wait(PodUid(arguments.uid))
        placement = self._placement(arguments)
        pod = self._pods.get(PodUid(arguments.uid))
        reference = PodRef(
            namespace=arguments.namespace,
            name=arguments.name,
            uid=arguments.uid,
            resource_version=pod.resource_version if pod else None,
        )
        self._leading.check()
        try:
            with self._noted(PodUid(arguments.uid)):
                await self._binder.bind(
                    reference, node=arguments.node, annotations=placement_annotations(placement)
                )
        except BackendError as exc:
            self._metrics.binds.labels("failed").inc()
            logger.warning("bind failed", extra={"pod_uid": arguments.uid, "error": str(exc)})
            if is_unknown(exc):
                # The pod may be bound: its leaf cells are kept for as long as it exists.
                self._keep(arguments, placement)
            return wire.error_answer(str(exc))
        self._note_bound(arguments, placement, seconds=self._clock.monotonic() - began)
        return wire.error_answer("")

    @contextmanager
    def _noted(self, pod: PodUid) -> Iterator[None]:
        """Count a binding as under way, for as long as the context lasts."""
        self.under_way[pod] += 1
        try:
            yield
        finally:
            self.under_way[pod] -= 1
            if not self.under_way[pod]:
                del self.under_way[pod]

    def _note_bound(
        self,
        arguments: wire.BindArguments,
        placement: Placement,
        *,
        seconds: float,
    ) -> None:
        self._metrics.binds.labels("bound").inc()
        # The feed reports the binding, too, but the lease may end before that.
        self._keep(arguments, placement)
        self._cluster.journal.note(
            RowKind.BIND,
            f"{arguments.namespace}/{arguments.name}",
            "bound",
            f"bound to {arguments.node}",
            pod_uid=arguments.uid,
            latency_seconds=seconds,
            details={"node": arguments.node, "leafCells": list(placement.leaf_cells)},
        )

    def _keep(self, arguments: wire.BindArguments, placement: Placement) -> None:
        """Make a lease permanent that a pod has used, unless lease or pod have ended meanwhile."""
        member = self._cluster.members.get(PodUid(arguments.uid))
        if member is not None and member.placement.node == placement.node:
            self._cluster.observe_bound(PlacedMember(request=member.request, placement=placement))

    def _placement(self, arguments: wire.BindArguments) -> Placement:
        """Return the placement to bind; RequestError if the pod has to be filtered again first."""
        pod = f"pod {arguments.namespace}/{arguments.name}"
        placement = self._cluster.placement(PodUid(arguments.uid))
        if placement is None:
            raise RequestError.at("PodUID", f"{pod} holds no lease; filter it again first")
        problem = ""
        if placement.node != arguments.node:
            problem = f"{pod} was placed on {placement.node}, not on {arguments.node}"
        elif placement.node not in self._cluster.nodes:
            problem = f"node {placement.node} of {pod} does not exist any more"
        if problem:
            raise RequestError.at("Node", f"{problem}; filter it again first")
        return placement
