"""Builds the simulation of pods that do not exist."""

from extender.forecasts.submitted_gang import SubmittedGangs
from extender.inspection.queue.window_routes import WindowRoutes
from extender.queue.variants.start_windows import WindowSearch
from extender.queue.variants.trials import Trials
from extender.simulate.admission import AdmissionSimulator
from extender.simulate.gang_variants import GangVariants
from extender.simulate.open_vcs import OpenVcs
from extender.simulate.places import PlaceSimulator
from extender.simulate.simulator import Simulator
from extender.simulate.start_windows import StartWindows
from extender.verbs_wiring import ExtenderVerbs
from extender.wiring import ExtenderState
from kube.api.client import KubeClient
from state.ledger.ledger import Ledger
from state.nodes.node_facts import NodeFacts
from state.nodes.seen_nodes import SeenNodes


def build_windows(state: ExtenderState, verbs: ExtenderVerbs) -> WindowRoutes:
    """Build what serves windows over the state of an extender."""
    planner = verbs.planner
    search = WindowSearch(
        verbs.cells,
        state.fitting_nodes,
        planner.reservations.gaps,
        prepare=state.cluster.prepare_stepwise,
    )
    windows = StartWindows(
        search,
        cluster=state.cluster,
        now=lambda: planner.ranking.now,
        monotonic=state.clock.monotonic,
    )
    return WindowRoutes(windows, _build_open_vcs(state, ledger=None))


def _build_open_vcs(state: ExtenderState, *, ledger: Ledger | None) -> OpenVcs:
    return OpenVcs(
        policy=lambda: state.policies.policy,
        topology=lambda: state.cluster.topology,
        ledger=ledger,
    )


def _build_variants(
    state: ExtenderState, verbs: ExtenderVerbs, *, ledger: Ledger | None
) -> GangVariants:
    planner, nodes = verbs.planner, state.fitting_nodes
    trials = Trials(
        verbs.cells,
        nodes,
        run_times=state.forecasts.run_times,
        seen=planner.seen,
        ranking=planner.ranking,
        reservations=planner.reservations,
        prepare=state.cluster.prepare_stepwise,
    )
    return GangVariants(
        trials,
        cluster=state.cluster,
        find=planner.seen.find,
        pod_of=state.pods.get,
        assume=lambda: nodes.assuming({}),
        open_vcs=_build_open_vcs(state, ledger=ledger),
        monotonic=state.clock.monotonic,
    )


def build_simulator(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    client: KubeClient,
    *,
    ledger: Ledger | None,
    seen_nodes: SeenNodes | None,
) -> Simulator:
    """Build a simulator over the state of an extender, and let explanations use it."""
    variants = _build_variants(state, verbs, ledger=ledger)
    verbs.explainer.variants_of = variants.of_waiting
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
        variants=variants,
    )
