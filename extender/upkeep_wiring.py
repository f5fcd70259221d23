"""Builds the background work of an extender's leader."""

from certs.store import CertificateStore
from extender.feeds.requests import to_member_request
from extender.outcomes.pod_events import PodEvents
from extender.settings import ExtenderSettings
from extender.simulate.simulator import Simulator
from extender.upkeep.ca_publisher import CaPublisher
from extender.upkeep.elastic.elastic_starts import ElasticStarts
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from extender.upkeep.late_leases import LateLeases
from extender.upkeep.node_quarantine import NodeQuarantine
from extender.upkeep.node_recorder import NodeRecorder
from extender.upkeep.provisioning import Provisioning
from extender.upkeep.waker import Waker
from extender.verbs_wiring import ExtenderVerbs
from extender.wiring import ExtenderState
from kube.api.client import KubeClient
from kube.api.config_maps import CA_CONFIG_MAP, ConfigMapWriter
from kube.api.elastic_jobs import ElasticJobs
from kube.api.node_writer import NodeWriter
from kube.api.pod_writer import GateMessageWriter, PodWaker
from kube.api.provisioning_requests import ProvisioningRequests
from state.nodes.seen_nodes import SeenNodes


class ExtenderUpkeep:
    """Background work of the leader beyond keeping the state up to date."""

    def __init__(
        self,
        state: ExtenderState,
        verbs: ExtenderVerbs,
        client: KubeClient,
        *,
        simulator: Simulator,
        seen_nodes: SeenNodes | None,
        settings: ExtenderSettings,
    ) -> None:
        to_request = state.translating(to_member_request)
        self.gate_messages = GateMessageWriter(client, check_leading=state.leading.check)
        provisioning_class = settings.provisioning_class
        self.provisioning = (
            _build_provisioning(state, client, provisioning_class) if provisioning_class else None
        )
        self.elastic = (
            _build_elastic(state, client, simulator) if settings.reclaims_gently else None
        )
        self.ca_publisher = _build_ca_publisher(state, client, settings)
        self.node_recorder = (
            NodeRecorder(seen_nodes, cluster=state.cluster, room=state.room, term=state.term)
            if seen_nodes
            else None
        )
        self.quarantine = NodeQuarantine(
            cluster=state.cluster,
            pods=state.pods,
            rule=state.quarantine_rule,
            writer=NodeWriter(client, check_leading=state.leading.check),
            events=state.events,
            clock=state.clock,
        )
        self.waker = Waker(
            cluster=state.cluster,
            pods=state.pods,
            waiting=state.outcomes.waiting,
            to_request=to_request,
            waker=PodWaker(client, state.clock),
            metrics=state.metrics,
            clock=state.clock,
        )
        self.late_leases = LateLeases(
            cluster=state.cluster,
            pods=state.pods,
            nodes_for=state.pod_needs.fitting,
            clock=state.clock,
        )
        self.half_bound = HalfBoundGangs(
            cluster=state.cluster,
            pods=state.pods,
            to_request=to_request,
            nodes_for=state.pod_needs.fitting,
            evictions=verbs.evictions,
            outcomes=state.outcomes,
            clock=state.clock,
        )


def _build_elastic(state: ExtenderState, client: KubeClient, simulator: Simulator) -> ElasticStarts:
    """Resume elastic Jobs: it needs the right to patch Jobs, as gentle reclaim does."""
    return ElasticStarts(
        ElasticJobs(client, check_leading=state.leading.check),
        simulator=simulator.of_plans(),
        cluster=state.cluster,
        events=state.events,
    )


def _build_provisioning(state: ExtenderState, client: KubeClient, class_name: str) -> Provisioning:
    return Provisioning(
        ProvisioningRequests(client, class_name=class_name, check_leading=state.leading.check),
        waiting=state.outcomes.waiting,
        pods=state.pods,
        to_request=state.translating(to_member_request),
        is_open=lambda: state.policies.cluster_text is None,
        events=PodEvents(state.events),
        clock=state.clock,
    )


def _build_ca_publisher(
    state: ExtenderState, client: KubeClient, settings: ExtenderSettings
) -> CaPublisher | None:
    """Publish the CA of replicas that serve TLS to other machines."""
    if settings.leadership is None or settings.certificates is None or not settings.serves_tls:
        return None
    writer = ConfigMapWriter(
        client,
        namespace=settings.namespace,
        name=CA_CONFIG_MAP,
        check_leading=state.leading.check,
    )
    return CaPublisher(CertificateStore(settings.certificates).ca_path, writer)
