"""The reviews of a webhook without HTTP, over a ledger in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from kube.api.client import KubeClient, KubeError
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from kube.read.gangs import GangForm
from service.clock import Clock
from service.settings import Address
from state.log.log import DecisionLog
from state.nodes.seen_nodes import SeenNodes
from state.outlook.outlook import OutlookStore
from state.promises.promises import PromiseStore
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.policy.documents import CLASSES_TEXT
from tests.support.twins.log import MemoryDecisions
from tests.support.twins.past import MemoryPast
from tests.support.webhook.admission_world import AdmissionWorld
from tests.support.webhook.replayed import ReplayedLog
from webhook.cluster_view import ClusterView
from webhook.metrics import WebhookMetrics
from webhook.records.refusal_log import RefusalLog
from webhook.routes import respond
from webhook.settings import WebhookSettings
from webhook.wire import ReviewRequest, ReviewResponse
from webhook.wiring import WebhookState, build_reviews

SETTINGS = WebhookSettings(
    address=Address(host="127.0.0.1", port=0), certificates=Path("unused"), admins=("root",)
)


class NoCluster(KubeClient):
    """A cluster that has nothing, or nothing but some Jobs and pods."""

    def __init__(
        self, jobs: Mapping[str, dict[str, Any]], stored: Sequence[Mapping[str, Any]]
    ) -> None:
        self._jobs = jobs
        self._stored = stored

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if path.endswith("/pods") and self._stored:
            return {"items": list(self._stored)}
        pod = path.rpartition("/pods/")[2]
        for one in self._stored:
            if pod == one["metadata"]["name"]:
                return dict(one)
        job = path.rpartition("jobs/")[2]
        if job in self._jobs:
            return self._jobs[job]
        raise KubeError(f"{method} {path}: not found", status=404)


@dataclass(frozen=True)
class Responding:
    """Reviews of one kind, whose errors become responses as in the routes."""

    reviews: Any
    refusals: RefusalLog = field(
        default_factory=lambda: RefusalLog(DecisionLog(MemoryDecisions()), clock=Clock())
    )

    async def mutate(self, request: ReviewRequest) -> ReviewResponse:
        """Review an object that may be changed."""
        return await respond(self.reviews.mutate, request, refusals=self.refusals)

    async def shape(self, request: ReviewRequest) -> ReviewResponse:
        """Review an object that asks for no leaf cells."""
        return await respond(self.reviews.shape, request, refusals=self.refusals)

    async def validate(self, request: ReviewRequest) -> ReviewResponse:
        """Review an object that is about to be stored."""
        return await respond(self.reviews.validate, request, refusals=self.refusals)


@dataclass
class Webhook:
    """One webhook that has these policy documents."""

    policies: dict[str, str] = field(default_factory=dict)
    world: AdmissionWorld = field(default_factory=AdmissionWorld)
    gates_all: bool = False
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stored: list[Mapping[str, Any]] = field(default_factory=list)
    client: KubeClient | None = None
    seen: SeenNodes | None = None
    promises: PromiseStore | None = None
    outlook: OutlookStore | None = None
    past: MemoryPast | None = None

    def __post_init__(self) -> None:
        metrics = WebhookMetrics(CollectorRegistry())
        self.events = KeptEvents()
        clock = Clock()
        client = self.client or NoCluster(self.jobs, self.stored)
        groups = PodGroupFollower(client, clock)
        view = ClusterView(policies=PolicySink(self.events), pod_groups=groups)
        old = {"name": "lab", "creationTimestamp": "2020-01-01T00:00:00Z"}
        view.namespaces.upsert({"metadata": old})
        documents = {"classes": CLASSES_TEXT, **self.policies}
        view.policies.replace([a_policy_map(kind, text) for kind, text in documents.items()])
        self.sink, self.groups = view.policies, groups.sinks[GangForm.NATIVE]
        self.priorities = view.priorities
        self.other_groups = groups.sinks[GangForm.COSCHEDULING]
        self.decisions = MemoryDecisions()
        self.log = ReplayedLog(self.decisions)
        reviews = build_reviews(
            replace(SETTINGS, gates_all=self.gates_all),
            view=view,
            state=WebhookState(
                ledger=self.world.ledger,
                usage=self.world.usage,
                log=self.log,
                seen_nodes=self.seen,
                promises=self.promises,
                outlook=self.outlook,
                past=self.past,
            ),
            client=client,
            clock=clock,
            events=self.events,
            metrics=metrics,
        )
        self.recent = None if reviews.effects is None else reviews.effects.recent
        self.facts, self.starts = reviews.facts, reviews.pods.outlook
        self.pods, self.guard, self.templates, self.bindings = (
            Responding(one, reviews.refusals)
            for one in (reviews.pods, reviews.guard, reviews.templates, reviews.bindings)
        )
        self.holds = Responding(reviews.users.holds, reviews.refusals)
        self.swaps = Responding(reviews.users.swaps, reviews.refusals)
        self.cancels = Responding(reviews.users.cancels, reviews.refusals)
        self.documents = Responding(reviews.policies, reviews.refusals)
