"""Filter and prioritize: the node that was chosen for a pod, or why there is none.

Filter is idempotent: a pod that holds a place gets the same answer for as long as it holds it.
"""

from collections.abc import Mapping, Sequence

import orjson

from extender import wire
from extender.cells.model import Place, Preempt, Reject, Wait
from extender.cluster import Cluster
from extender.events import Announcer
from extender.metrics import ExtenderMetrics
from extender.planner import Planner
from extender.pods import PodSink
from extender.questions import Questions, read_uid
from extender.waiting import Refusals, Waiting, WaitingPods
from kube.pods import ManagedPod
from policy.submission import NodeName
from service.bodies import parse_body
from service.clock import Clock
from state.records import Kind


class Filter:
    """Answers filter and prioritize."""

    def __init__(
        self,
        *,
        planner: Planner,
        questions: Questions,
        cluster: Cluster,
        pods: PodSink,
        waiting: WaitingPods,
        announcer: Announcer,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._planner = planner
        self._questions = questions
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._announcer = announcer
        self._metrics = metrics
        self._clock = clock
        self._refusals = Refusals()
        pods.on_end.append(lambda pod: waiting.remove(pod.uid))

    def filter(self, body: bytes) -> bytes:
        """Say which of the nodes offered the pod may use: the one that was chosen for it."""
        again = self._refusals.repeat(body, version=self._cluster.version)
        if again is not None:
            self._metrics.repeats.inc()
            return again
        arguments = parse_body(wire.FilterArguments, body)
        pod = self._questions.read(arguments.pod)
        if pod is None:
            return orjson.dumps(wire.pass_answer(arguments))
        if self._planner.plans_for(pod.uid):
            return orjson.dumps(self._answer_planned(pod, arguments))
        decision = self._questions.decide(pod, arguments.candidate_nodes, kind=Kind.PLACEMENT)
        if isinstance(decision, Place):
            self._note_placed(pod, decision)
            return orjson.dumps(wire.chosen_answer(decision.placement.node, arguments))
        self._note_waiting(pod, decision, list(arguments.candidate_nodes))
        refusal = _refusal(decision, arguments)
        self._refusals.put(body, refusal, version=self._cluster.version)
        return refusal

    def _answer_planned(
        self, pod: ManagedPod, arguments: wire.FilterArguments
    ) -> Mapping[str, object]:
        """Answer from the lease: where a planned pod goes was decided before it came here."""
        placement = self._cluster.engine.placement(pod.uid)
        if placement is None:
            return wire.wait_answer(f"gang {pod.gang.key} waits to be planned again", arguments)
        if placement.node in arguments.candidate_nodes:
            return wire.chosen_answer(placement.node, arguments)
        self._planner.refuse_node(pod.uid)
        reason = f"pod was planned on node {placement.node}, which kube-scheduler does not offer"
        return wire.wait_answer(reason, arguments)

    def prioritize(self, arguments: wire.FilterArguments) -> list[Mapping[str, str | int]]:
        """Prefer the node that filter chose; asked only where other nodes are left beside it."""
        placement = self._cluster.engine.placement(read_uid(arguments.pod))
        return wire.prioritize_answer(
            arguments.candidate_nodes, placement.node if placement else None
        )

    def _note_placed(self, pod: ManagedPod, decision: Place) -> None:
        if self._waiting.get(pod.uid) is not None:
            self._announcer.placed(pod, decision)
            self._waiting.remove(pod.uid)
        for gang in decision.downgraded:
            members = [self._pods.get(uid) for uid in self._cluster.members.of_gang(gang)]
            self._announcer.downgraded(
                [member for member in members if member is not None], by=decision.request.gang
            )

    def _note_waiting(
        self,
        pod: ManagedPod,
        decision: Wait | Reject | Preempt,
        offered: Sequence[NodeName],
    ) -> None:
        waiting = Waiting(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            gang=decision.request.gang,
            vc=pod.vc,
            code=str(decision.code),
            reason=decision.reason,
            change=decision.change,
            since=self._clock.now(),
            offered=offered,
            asks_to_preempt=isinstance(decision, Preempt) and pod.may_preempt,
        )
        if self._waiting.put(waiting):
            self._announcer.waits(waiting)


def _refusal(decision: Wait | Reject | Preempt, arguments: wire.FilterArguments) -> bytes:
    """What its owner must change is an error, which kube-scheduler repeats less often."""
    if isinstance(decision, Reject):
        return orjson.dumps(wire.error_answer(decision.reason))
    return orjson.dumps(wire.wait_answer(decision.reason, arguments))
