"""A webhook, a planner and a simulator over one ledger and one cluster, without a network."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from extender.cells.model import Place, Reason
from extender.planning.cluster_cells import ClusterCells
from extender.planning.held_calls import HeldCalls
from extender.planning.pending_writes import PendingWrites
from extender.queue.model import Action, ReleasePod
from extender.queue.ports import UnknownRunTimes
from extender.queue.variants.trials import Trials
from extender.simulate.admission import AdmissionSimulator
from extender.simulate.gang_variants import GangVariants
from extender.simulate.open_vcs import OpenVcs
from extender.simulate.places import PlaceSimulator
from extender.simulate.simulator import SimulateArguments, Simulation, Simulator
from kube.api.client import KubeClient, KubeError
from kube.follow.namespaces import NamespaceSink
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.priority_classes import PATH
from kube.placement_annotations import placement_annotations
from kube.read.managed_pod import ManagedPod
from policy.classes import Classes
from policy.placement import Placement
from policy.submission import PodUid
from service.clock import Clock
from simulation.objects.patch import json_patch
from state.nodes.node_facts import NodeFacts
from tests.support.extender.planning import Planning
from tests.support.extender.shell import Shell
from tests.support.kube.nodes import a_node
from tests.support.policy.cluster_texts import hived_text
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse


class PriorityClasses(KubeClient):
    """A cluster that has PriorityClasses and nothing else."""

    def __init__(self, *names: str) -> None:
        self._names = names

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if path == PATH:
            return {"items": [{"metadata": {"name": name}, "value": 1} for name in self._names]}
        raise KubeError(f"{method} {path}: not found", status=404)


class _UnpaidPods:
    """Holds the pods that the webhook did not charge."""

    def holds(self, pod: ManagedPod) -> bool:
        return pod.is_gated and pod.is_uncharged


@dataclass
class _Binder:
    """Binds each pod that the planner releases; ends no victims."""

    placed: dict[PodUid, Placement] = field(default_factory=dict)

    async def execute(self, action: Action, *, is_wanted: Callable[[], bool]) -> None:
        assert is_wanted()
        if isinstance(action, ReleasePod):
            self.placed[action.uid] = action.placement


class SimulatedWorld:
    """What is said of a pod, and what then happens to it."""

    def __init__(self, cluster: str | None = None, **policies: str) -> None:
        document = cluster or hived_text(lab=4)
        self.webhook = Webhook(policies={**policies, "cluster": document}, gates_all=True)
        assert self.webhook.sink.problems == (), self.webhook.sink.problems
        self.ledger = self.webhook.world.ledger
        shell = Shell(classes=self._classes)
        shell.cluster.use_document(document)
        self.binder = _Binder()
        self.plans = Planning(executor=self.binder, shell=shell)  # type: ignore[arg-type]
        self.plans.classes = self._classes()
        self.plans.planner._held._quota = _UnpaidPods()  # type: ignore[assignment]
        offered = {"nvidia.com/gpu": "8", "cpu": "64", "pods": "110"}
        for index in range(4):
            node = a_node(f"node-{index:02}").with_status(capacity=offered, allocatable=offered)
            self.plans.nodes.upsert(node)
        self.objects: dict[PodUid, dict[str, Any]] = {}
        self.simulator = self._build_simulator(shell)

    def _classes(self) -> Classes:
        return self.webhook.sink.policy.classes

    def _build_simulator(self, shell: Shell) -> Simulator:
        client = PriorityClasses("prod", "test", "oppo")
        cells = ClusterCells(
            shell.cluster, shell.pods, outcomes=shell.outcomes, calls=HeldCalls(PendingWrites())
        )
        facts = NodeFacts(
            None,
            document=lambda: self.webhook.sink.policy.cluster,
            monotonic=lambda: 0.0,
        )
        self.open_vcs = OpenVcs(
            policy=lambda: self.webhook.sink.policy,
            topology=lambda: shell.cluster.topology,
            ledger=self.ledger,
        )
        self.variants = self._build_variants(shell, cells)
        return Simulator(
            admission=AdmissionSimulator(
                client=client,
                policies=self.webhook.sink,
                groups=PodGroupFollower(client, Clock()),
                pods=shell.pods,
                namespaces=NamespaceSink(),
                facts=facts,
                ledger=self.ledger,
            ),
            places=PlaceSimulator(
                cells=cells,
                pods=shell.pods,
                needs=self.plans.planner._needs,
                queued=self.plans.planner.to_queued,
                reason_to_hold=self.plans.planner.reason_to_hold,
                reservations=self.plans.planner.reservations.gaps,
                clock=shell.clock,
            ),
            variants=self.variants,
        )

    def _build_variants(self, shell: Shell, cells: ClusterCells) -> GangVariants:
        planner, nodes = self.plans.planner, self.plans.planner._needs.nodes
        trials = Trials(
            cells,
            nodes,
            run_times=UnknownRunTimes(),
            seen=planner.seen,
            ranking=planner.ranking,
            reservations=planner.reservations,
            prepare=shell.cluster.prepare_stepwise,
        )
        return GangVariants(
            trials,
            cluster=shell.cluster,
            find=planner.seen.find,
            pod_of=shell.pods.get,
            assume=lambda: nodes.assuming({}),
            open_vcs=self.open_vcs,
            monotonic=shell.clock.monotonic,
        )

    async def simulate(self, pod: dict[str, Any], *, user: str) -> Simulation:
        return await self.simulator.simulate(SimulateArguments(pod=pod, user=user))

    async def create(self, pod: dict[str, Any], *, user: str) -> ReviewResponse:
        """Have a pod reviewed, and show it to the planner if it may exist."""
        answer = await self.webhook.pods.mutate(a_review(pod, user=user))
        if answer.is_allowed:
            stored = json_patch(pod, list(answer.patch))
            stored["metadata"]["uid"] = f"uid-of-{pod['metadata']['name']}"
            self._see(stored)
        return answer

    async def settle(self) -> None:
        """Let the planner plan, and bind what it releases."""
        for _ in range(20):
            await asyncio.sleep(0)
        while self.binder.placed:
            uid, placement = self.binder.placed.popitem()
            self._see(_bound(self.objects[uid], placement))
        for _ in range(20):
            await asyncio.sleep(0)

    def _see(self, obj: dict[str, Any]) -> None:
        self.objects[PodUid(obj["metadata"]["uid"])] = obj
        self.plans.pods.upsert(obj)

    def happened(self, gang: str) -> object:
        """Where the members of a gang are, or why it waits."""
        members = self.plans.shell.cluster.members
        places = [one.placement for _, one in members.items() if str(one.request.gang) == gang]
        if places:
            return sorted((place.node, len(place.leaf_cells)) for place in places)
        return self.plans.waiting()[gang]


def foretold(simulation: Simulation) -> object:
    """Where a simulation says that the members go, or why they wait or are refused."""
    plan = simulation.plan
    if plan is None:
        return simulation.admission.refusal
    if isinstance(plan, Reason):
        return plan.text
    if isinstance(plan, Place):
        places = (plan.placement, *plan.others)
        return sorted((place.node, len(place.leaf_cells)) for place in places)
    return plan.reason.text


def _bound(obj: dict[str, Any], placement: Placement) -> dict[str, Any]:
    metadata, spec = obj["metadata"], {**obj["spec"], "nodeName": placement.node}
    spec.pop("schedulingGates", None)
    annotations = {**metadata["annotations"], **placement_annotations(placement)}
    return {**obj, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
