"""Builds all reviews over one view of the cluster and one ledger."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn

from kube.api.client import KubeClient
from kube.api.events import EventWriter
from policy.quotas.limits import Scope
from policy.submission import UserName
from service.clock import Clock
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog
from state.nodes.node_facts import NodeFacts
from state.nodes.seen_nodes import SeenNodes
from state.outlook.outlook import OutlookStore
from state.past.past import PastStore
from state.promises.promises import PromiseStore
from webhook.admission.admitter import Admitter
from webhook.admission.memory_decider import LiveUsage
from webhook.admission.recent_gangs import RecentGangCheck, RecentGangs
from webhook.admission.start_outlook import StartOutlook
from webhook.cluster_view import ClusterView
from webhook.guard.binding_guard import BindingGuard
from webhook.guard.node_guard import NodeGuard
from webhook.guard.pod_guard import PodGuard
from webhook.guard.user_marks import UserMarks
from webhook.ledger_access.breaker import Breaker
from webhook.ledger_access.catch_up import catch_up
from webhook.metrics import WebhookMetrics
from webhook.policy_effects.policy_effects import PolicyEffects
from webhook.records.decision_recorder import DecisionRecorder
from webhook.records.limit_changes import LimitChanges
from webhook.records.pending_events import PendingEvents
from webhook.records.refusal_log import RefusalLog
from webhook.reviews.pod_group_reviews import PodGroupReviews
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.policy_reviews import PolicyReviews
from webhook.reviews.preemption_advice import PreemptionAdvice
from webhook.reviews.template_reviews import TemplateReviews
from webhook.reviews.user_requests.user_reviews import UserReviews, build_user_reviews
from webhook.settings import WebhookSettings

_PROBE_SCOPE: Final = Scope(UserName("nobody"))
"""The scope whose usage is read to find out whether the ledger answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """The ledger, its cached usage, the decision log, and what a webhook can do without.

    Without `seen_nodes` nothing is known of nodes, and nothing is said about what can never run;
    without an `outlook` nothing is said about when gangs start, without `promises` the leader
    alone refuses swaps of gangs with a reservation, and without the `past` dry runs of policy
    documents are not told what they would have changed.
    """

    ledger: Ledger
    usage: LiveUsage
    log: DecisionLog
    seen_nodes: SeenNodes | None = None
    outlook: OutlookStore | None = None
    promises: PromiseStore | None = None
    past: PastStore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReviews:
    """All reviews, and their background tasks."""

    pods: PodReviews
    guard: PodGuard
    users: UserReviews
    bindings: BindingGuard
    templates: TemplateReviews
    policies: PolicyReviews
    refusals: RefusalLog
    breaker: Breaker
    recent: RecentGangCheck
    facts: NodeFacts
    effects: PolicyEffects | None
    """What dry runs of documents are told; like `breaker`, `recent`, `facts` and what the pods'
    reviews read, it runs in the background."""

    @property
    def tasks(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, NoReturn]]]:
        """What runs in the background, by name."""
        effects = {} if self.effects is None else {"admissions": self.effects.run}
        return {
            **effects,
            "ledger probe": self.breaker.run,
            "recent gangs": self.recent.run,
            "node facts": self.facts.run,
            "outlook": self.pods.outlook.run,
        }


def build_reviews(
    settings: WebhookSettings,
    *,
    view: ClusterView,
    state: WebhookState,
    client: KubeClient,
    clock: Clock,
    events: EventWriter,
    metrics: WebhookMetrics,
) -> WebhookReviews:
    """Build all reviews."""
    pending = PendingEvents(events)
    breaker = Breaker(
        partial(state.ledger.usage, _PROBE_SCOPE),
        catch_up=partial(catch_up, state.ledger, state.usage.assumed),
    )
    recent = RecentGangs(monotonic=clock.monotonic)
    admitter = Admitter(ledger=state.ledger, usage=state.usage, breaker=breaker, recent=recent)
    trusted = (settings.extender, *settings.admins)
    binders = (settings.scheduler, *settings.binders)
    nodes = NodeGuard(view.policies, binders=(*trusted, *binders))
    users = UserMarks(view.policies, admins=settings.admins)
    facts = _build_facts(state.seen_nodes, view, clock)
    pods = PodReviews(
        view=view,
        client=client,
        admitter=admitter,
        recorder=DecisionRecorder(log=state.log, metrics=metrics, events=pending, clock=clock),
        check_node=nodes.check,
        facts=facts,
        clock=clock,
        gates_all=settings.gates_all,
    )
    pods.outlook = StartOutlook(state.outlook, clock=clock)
    effects = None if state.past is None else PolicyEffects(state.past, clock=clock)
    groups = PodGroupReviews(view=view, admitter=admitter, pods=pods, client=client, facts=facts)
    return WebhookReviews(
        pods=pods,
        guard=PodGuard(events=pending, nodes=nodes, users=users, trusted=trusted),
        users=_build_users(users, settings, view=view, state=state, client=client, clock=clock),
        bindings=BindingGuard(client, writers=trusted, binders=binders),
        templates=_build_templates(settings, view, pods=pods, groups=groups),
        policies=_build_policies(
            settings,
            view,
            state,
            facts=facts,
            changes=LimitChanges(log=state.log, events=events, clock=clock),
            effects=effects,
        ),
        refusals=RefusalLog(state.log, clock=clock),
        breaker=breaker,
        facts=facts,
        effects=effects,
        recent=RecentGangCheck(
            recent, ledger=state.ledger, assumed=state.usage.assumed, breaker=breaker
        ),
    )


def _build_templates(
    settings: WebhookSettings, view: ClusterView, *, pods: PodReviews, groups: PodGroupReviews
) -> TemplateReviews:
    return TemplateReviews(
        policies=view.policies,
        pods=pods,
        groups=groups,
        advice=PreemptionAdvice(view.policies, is_gentle=settings.reclaims_gently),
        admins=settings.admins,
    )


def _build_policies(
    settings: WebhookSettings,
    view: ClusterView,
    state: WebhookState,
    *,
    facts: NodeFacts,
    changes: LimitChanges,
    effects: PolicyEffects | None,
) -> PolicyReviews:
    return PolicyReviews(
        view.policies,
        priorities=view.priorities,
        ledger=state.ledger,
        nodes=facts,
        admins=settings.admins,
        changes=changes,
        effects=effects,
    )


def _build_users(
    users: UserMarks,
    settings: WebhookSettings,
    *,
    view: ClusterView,
    state: WebhookState,
    client: KubeClient,
    clock: Clock,
) -> UserReviews:
    return build_user_reviews(
        users,
        view=view,
        extender=settings.extender,
        client=client,
        promises=state.promises,
        log=state.log,
        clock=clock,
    )


def _build_facts(seen: SeenNodes | None, view: ClusterView, clock: Clock) -> NodeFacts:
    facts = NodeFacts(
        seen, document=lambda: view.policies.policy.cluster, monotonic=clock.monotonic
    )
    view.policies.on_change.append(facts.wake)
    return facts
