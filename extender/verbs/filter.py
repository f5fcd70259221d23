"""Filter and prioritize: the node that was chosen for a pod, or why there is none.

Filter is idempotent: a pod that has a place gets the same answer for as long as it has it.
"""

from collections.abc import Mapping

import orjson

from extender.cells.model import Place, Preempt, Reject, Wait
from extender.cells.views.listings import Stepwise, run_to_end
from extender.cluster.cluster import Cluster
from extender.metrics import ExtenderMetrics
from extender.planning.planning_loop import PlanningLoop
from extender.verbs import wire
from extender.verbs.pod_decider import PodDecider, read_uid
from extender.verbs.repeated_refusals import RepeatedRefusals
from extender.verbs.unmanaged_pods import UnmanagedPods
from kube.read.managed_pod import ManagedPod
from service.bodies import parse_body
from state.log.records import RowKind


class FilterVerb:
    """Answers filter and prioritize."""

    def __init__(
        self,
        *,
        planner: PlanningLoop,
        decider: PodDecider,
        cluster: Cluster,
        unmanaged: UnmanagedPods,
        metrics: ExtenderMetrics,
    ) -> None:
        self._planner = planner
        self._unmanaged = unmanaged
        self._decider = decider
        self._cluster = cluster
        self._metrics = metrics
        self._refusals = RepeatedRefusals()

    def filter(self, body: bytes) -> bytes:
        """Return the one node that was chosen for the pod, or why there is none."""
        return run_to_end(self.filter_stepwise(body))

    def filter_stepwise(self, body: bytes) -> Stepwise[bytes]:
        """Like `filter`; yields while a decision is prepared."""
        again = self._refusals.repeat(body, version=self._cluster.version)
        if again is not None:
            self._metrics.repeats.inc()
            return again
        arguments = parse_body(wire.FilterArguments, body)
        if not self._planner.plans_for(read_uid(arguments.pod)):
            yield from self._decider.prepare_stepwise(arguments.pod)
        pod = self._decider.read(arguments.pod)
        if pod is None:
            self._unmanaged.put(read_uid(arguments.pod))
            return orjson.dumps(wire.pass_answer(arguments))
        self._planner.note_asked(pod)
        if pod.is_helper:
            return orjson.dumps(self._answer_helper(pod, arguments))
        self._unmanaged.remove(pod.uid)
        if self._planner.plans_for(pod.uid):
            return orjson.dumps(self._answer_planned(pod, arguments))
        decision = self._decider.decide(pod, arguments.candidate_nodes, kind=RowKind.PLACEMENT)
        if isinstance(decision, Place):
            return orjson.dumps(wire.chosen_answer(decision.placement.node, arguments))
        refusal = _refusal(decision, arguments)
        self._refusals.put(body, refusal, version=self._cluster.version)
        return refusal

    def _answer_helper(
        self, pod: ManagedPod, arguments: wire.FilterArguments
    ) -> Mapping[str, object]:
        """Pass a member without leaf cells, once its gang has its places."""
        if not self._planner.plans_for(pod.uid):
            self._unmanaged.put(pod.uid)
            return wire.pass_answer(arguments)
        self._unmanaged.remove(pod.uid)
        self._planner.offer_nodes(pod.uid, arguments.candidate_nodes)
        if self._planner.may_start(pod.uid):
            return wire.pass_answer(arguments)
        return wire.wait_answer(_lost_lease(pod), arguments)

    def _answer_planned(
        self, pod: ManagedPod, arguments: wire.FilterArguments
    ) -> Mapping[str, object]:
        """Answer from the lease: the planner has chosen the node before."""
        placement = self._cluster.placement(pod.uid)
        if placement is None:
            self._planner.offer_nodes(pod.uid, arguments.candidate_nodes)
            return wire.wait_answer(_lost_lease(pod), arguments)
        if placement.node in arguments.candidate_nodes:
            return wire.chosen_answer(placement.node, arguments)
        self._planner.refuse_node(pod.uid)
        reason = (
            f"leaf cells are leased on node {placement.node}, which kube-scheduler has excluded"
        )
        return wire.wait_answer(reason, arguments)

    def prioritize(self, arguments: wire.FilterArguments) -> list[Mapping[str, str | int]]:
        """Prefer the node that filter chose."""
        placement = self._cluster.placement(read_uid(arguments.pod))
        return wire.prioritize_answer(
            arguments.candidate_nodes, placement.node if placement else None
        )


def _lost_lease(pod: ManagedPod) -> str:
    return f"gang {pod.gang.key} has lost its lease and waits to be planned again"


def _refusal(decision: Wait | Reject | Preempt, arguments: wire.FilterArguments) -> bytes:
    """Answer with an error where the owner must change the pod: kube-scheduler retries it less."""
    if isinstance(decision, Reject):
        return orjson.dumps(wire.error_answer(decision.reason.text))
    return orjson.dumps(wire.wait_answer(decision.reason.text, arguments))
