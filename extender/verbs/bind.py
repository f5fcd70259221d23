"""Bind: one API call that puts a pod on its node, with its placement.

The members of a gang are bound together: the first ones wait until the last one has passed
kube-scheduler's own checks, too. Bindings are concurrent: no lock is held while the API server
answers.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from extender.cells.model import PlacedMember
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.leader_role import LeaderRole
from extender.metrics import ExtenderMetrics
from extender.queue.held_bindings import Verdict
from extender.verbs import wire
from extender.verbs.unmanaged_pods import UnmanagedPods
from kube.api.binder import PodRef, is_unknown
from kube.placement_annotations import placement_annotations
from kube.read.managed_pod import charged_gang
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


class Holds(Protocol):
    """What bind needs of the planner."""

    def verdict(
        self, uid: PodUid, *, is_open: Callable[[], bool]
    ) -> AbstractAsyncContextManager[Verdict]:
        """Wait until a pod may be bound, or its gang is given up."""


class BindVerb:
    """Answers bind."""

    def __init__(
        self,
        *,
        leading: LeaderRole,
        cluster: Cluster,
        pods: PodSink,
        binder: BindPods,
        holds: Holds,
        unmanaged: UnmanagedPods,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._leading = leading
        self._cluster = cluster
        self._pods = pods
        self._binder = binder
        self._holds = holds
        self._unmanaged = unmanaged
        self._metrics = metrics
        self._clock = clock

    async def bind(
        self, arguments: wire.BindArguments, *, is_open: Callable[[], bool] = lambda: True
    ) -> dict[str, Any]:
        """Bind the pod to the node that was chosen for it, and to no other.

        The answer is held until the pod's whole gang can be bound. No binding is sent for a caller
        that has gone, which `is_open` tells: kube-scheduler tries that pod again.
        """
        uid = PodUid(arguments.uid)
        if uid in self._unmanaged:
            return await self._bind_unplaced(arguments)
        pod = self._pods.get(uid)
        is_helper = pod is not None and pod.is_helper
        if not is_helper:
            self._placement(arguments)
        began = self._clock.monotonic()
        async with self._holds.verdict(uid, is_open=is_open) as verdict:
            if verdict.gang is not None:
                self._metrics.hold_seconds.observe(self._clock.monotonic() - began)
            if verdict.reason is not None:
                self._metrics.binds.labels("given-up").inc()
                return wire.error_answer(verdict.reason.text)
            if is_helper:
                return await self._bind_unplaced(arguments)
            return await self._bind_placed(arguments)

    async def _bind_placed(self, arguments: wire.BindArguments) -> dict[str, Any]:
        began = self._clock.monotonic()
        placement = self._placement(arguments)
        try:
            await self._send(arguments, placement_annotations(placement))
        except BackendError as exc:
            if is_unknown(exc):
                # The pod may be bound: its leaf cells are kept for as long as it exists.
                self._keep(arguments, placement)
            return self._failed(arguments, exc)
        self._note_bound(arguments, placement, seconds=self._clock.monotonic() - began)
        return wire.error_answer("")

    async def _bind_unplaced(self, arguments: wire.BindArguments) -> dict[str, Any]:
        """Bind a pod that asks for no leaf cells, as kube-scheduler itself would."""
        try:
            await self._send(arguments, {})
        except BackendError as exc:
            return self._failed(arguments, exc)
        self._metrics.binds.labels("bound").inc()
        return wire.error_answer("")

    async def _send(self, arguments: wire.BindArguments, annotations: Mapping[str, str]) -> None:
        pod = self._pods.get(PodUid(arguments.uid))
        reference = PodRef(
            namespace=arguments.namespace,
            name=arguments.name,
            uid=arguments.uid,
            resource_version=pod.resource_version if pod else None,
        )
        self._leading.check()
        await self._binder.bind(reference, node=arguments.node, annotations=annotations)

    def _failed(self, arguments: wire.BindArguments, error: BackendError) -> dict[str, Any]:
        self._metrics.binds.labels("failed").inc()
        logger.warning("bind failed", extra={"pod_uid": arguments.uid, "error": str(error)})
        return wire.error_answer(str(error))

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
            details={
                "node": arguments.node,
                "leafCells": list(placement.leaf_cells),
                **self._charge(PodUid(arguments.uid)),
            },
        )

    def _charge(self, uid: PodUid) -> dict[str, str]:
        """Name the charge of a pod that Kubernetes named: its admission is in the log under it."""
        pod = self._pods.get(uid)
        charged = None if pod is None else charged_gang(pod)
        return {} if pod is None or charged == pod.gang.key else {"charge": str(charged)}

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
