"""Builds the simulation of pods that do not exist."""

from extender.forecasts.submitted_gang import SubmittedGangs
from extender.simulate.admission import AdmissionSimulator
from extender.simulate.places import PlaceSimulator
from extender.simulate.simulator import Simulator
from extender.verbs_wiring import ExtenderVerbs
from extender.wiring import ExtenderState
from kube.api.client import KubeClient
from state.ledger.ledger import Ledger
from state.nodes.node_facts import NodeFacts
from state.nodes.seen_nodes import SeenNodes


def build_simulator(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    client: KubeClient,
    *,
    ledger: Ledger | None,
    seen_nodes: SeenNodes | None,
) -> Simulator:
    """Build a simulator over the state of an extender."""
    facts = NodeFacts(
        seen_nodes,
        document=lambda: state.policies.policy.cluster,
        monotonic=state.clock.monotonic,
    )
    return Simulator(
        admission=AdmissionSimulator(
            client=client,
            policies=state.policies,
            groups=state.groups,
            pods=state.pods,
            namespaces=state.namespaces,
            facts=facts,
            ledger=ledger,
        ),
        places=PlaceSimulator(
            cells=verbs.cells,
            pods=state.pods,
            needs=state.pod_needs,
            queued=verbs.planner.to_queued,
            reason_to_hold=verbs.planner.reason_to_hold,
            reservations=verbs.planner.reservations.gaps,
            clock=state.clock,
        ),
        starts=SubmittedGangs(
            state.forecasts.starts, pods=state.pods, sizes=state.groups, clock=state.clock
        ),
    )
