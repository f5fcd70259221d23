"""The one sequence of the scheduler side: translate, plan, apply, log, answer.

Between plan and apply nothing is awaited, so that one event loop is the single writer that the
engine wants. Bind is the only verb that waits for the world, and it holds nothing meanwhile.
"""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from extender import wire
from extender.cells.engine import Engine
from extender.cells.model import Decision, Place, Placement, Preempt, Reject, Wait
from extender.cluster import PodSink
from extender.metrics import ExtenderMetrics
from kube.binding import PodRef
from kube.pods import ManagedPod, read_pod
from policy.errors import BackendError, RequestError
from policy.submission import PodUid
from service.clock import Clock
from state.log import DecisionLog, DecisionRecord

logger = logging.getLogger(__name__)


class BindPods(Protocol):
    """What bind needs of Kubernetes."""

    async def bind(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        """Put the pod on the node, with the annotations; BackendError if that failed."""


class ExtenderService:
    """Answers kube-scheduler."""

    def __init__(
        self,
        *,
        engine: Engine,
        pods: PodSink,
        binder: BindPods,
        log: DecisionLog,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._pods = pods
        self._binder = binder
        self._log = log
        self._metrics = metrics
        self._clock = clock

    def filter(self, arguments: wire.FilterArguments) -> dict[str, Any]:
        """Say which of the nodes offered the pod may use: the one that was chosen for it."""
        began = self._clock.monotonic()
        pod = read_pod(arguments.pod)
        if pod is None:
            return wire.pass_answer(arguments)
        request = wire.to_member_request(pod)
        decision = self._engine.plan(request, candidate_nodes=arguments.candidate_nodes)
        if not isinstance(decision, Preempt):
            # Nobody ends victims yet, so nothing is reserved for whoever would need them.
            self._engine.apply(decision, now=began)
        self._record(pod, decision, seconds=self._clock.monotonic() - began)
        return wire.filter_answer(decision, arguments)

    def prioritize(self, arguments: wire.FilterArguments) -> list[Mapping[str, str | int]]:
        """Prefer the node that filter chose; asked only where other nodes are left beside it."""
        pod = read_pod(arguments.pod)
        placement = self._engine.placement(pod.uid) if pod else None
        return wire.prioritize_answer(
            arguments.candidate_nodes, placement.node if placement else None
        )

    def preempt(self, _: wire.PreemptArguments) -> dict[str, Any]:
        """Veto: the engine has no victims to offer, and kube-scheduler's own would not help."""
        return wire.veto_answer()

    async def bind(self, arguments: wire.BindArguments) -> dict[str, Any]:
        """Bind the pod to the node it was placed on, and to no other."""
        began = self._clock.monotonic()
        placement = self._placement(arguments)
        pod = self._pods.get(PodUid(arguments.uid))
        reference = PodRef(
            namespace=arguments.namespace,
            name=arguments.name,
            uid=arguments.uid,
            resource_version=pod.resource_version if pod else None,
        )
        try:
            await self._binder.bind(
                reference, node=arguments.node, annotations=wire.to_annotations(placement)
            )
        except BackendError as exc:
            self._metrics.binds.labels("failed").inc()
            logger.warning("bind failed", extra={"pod_uid": arguments.uid, "error": str(exc)})
            return wire.error_answer(str(exc))
        self._metrics.binds.labels("bound").inc()
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="extender",
                kind="bind",
                subject=f"{arguments.namespace}/{arguments.name}",
                pod_uid=arguments.uid,
                outcome="bound",
                reason=f"bound to {arguments.node}",
                latency_seconds=self._clock.monotonic() - began,
                details={"node": arguments.node, "leafCells": list(placement.leaf_cells)},
            )
        )
        return wire.error_answer("")

    def _placement(self, arguments: wire.BindArguments) -> Placement:
        placement = self._engine.placement(PodUid(arguments.uid))
        if placement is None:
            raise RequestError.at(
                "PodUID",
                f"pod {arguments.namespace}/{arguments.name} holds no lease; filter it again first",
            )
        if placement.node != arguments.node:
            raise RequestError.at(
                "Node",
                f"pod {arguments.namespace}/{arguments.name} was placed on {placement.node}, "
                f"not on {arguments.node}; filter it again first",
            )
        return placement

    def _record(self, pod: ManagedPod, decision: Decision, *, seconds: float) -> None:
        match decision:
            case Place(placement=placement):
                outcome, reason = "placed", f"placed on {placement.node}"
            case (
                Wait(code=outcome, reason=reason)
                | Reject(code=outcome, reason=reason)
                | Preempt(code=outcome, reason=reason)
            ):
                pass
        self._metrics.decisions.labels(outcome).inc()
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="extender",
                kind="filter",
                subject=str(pod.gang.key),
                pod_uid=pod.uid,
                outcome=outcome,
                reason=reason,
                latency_seconds=seconds,
                details={"pod": pod.name, "leafCount": pod.leaf_count},
            )
        )
