"""All kinds of reviews, put together over one view of the cluster and one ledger."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from kube.api.client import KubeClient
from kube.api.events import EventWriter
from policy.quotas.limits import Scope
from policy.submission import UserName
from service.clock import Clock
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog
from webhook.admission.admitter import Admitter
from webhook.admission.breaker import Breaker
from webhook.admission.catch_up import catch_up
from webhook.admission.live_members import Members
from webhook.admission.memory_decider import LiveUsage
from webhook.admission.pod_group_sizes import PodGroups
from webhook.admission.recent_gangs import RecentCheck, RecentGangs
from webhook.cluster_view import ClusterView
from webhook.metrics import WebhookMetrics
from webhook.reviews.answers import AnswerSettings
from webhook.reviews.binding_reviews import BindingGuard
from webhook.reviews.decision_notes import DecisionNotes
from webhook.reviews.pending_events import ToldPods
from webhook.reviews.pod_group_reviews import PodGroupReviews
from webhook.reviews.pod_guard import PodGuard
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.policy_reviews import PolicyReviews
from webhook.reviews.template_reviews import TemplateReviews
from webhook.settings import WebhookSettings

_ANYBODY: Final = Scope(UserName("nobody"))
"""Whose usage is asked for to see whether the ledger answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What was charged and decided, and where that is written."""

    ledger: Ledger
    usage: LiveUsage
    log: DecisionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """Who answers about what."""

    pods: PodReviews
    guard: PodGuard
    bindings: BindingGuard
    templates: TemplateReviews
    policies: PolicyReviews
    breaker: Breaker
    recent: RecentCheck
    """These two are to be run beside them."""


def build_reviews(
    settings: WebhookSettings,
    *,
    view: ClusterView,
    state: State,
    client: KubeClient,
    clock: Clock,
    events: EventWriter,
    metrics: WebhookMetrics,
) -> Reviews:
    """Put everything together that answers."""
    told = ToldPods(events)
    breaker = Breaker(
        partial(state.ledger.usage, _ANYBODY),
        catch_up=partial(catch_up, state.ledger, state.usage.assumed),
    )
    recent = RecentGangs(monotonic=clock.monotonic)
    admitter = Admitter(ledger=state.ledger, usage=state.usage, breaker=breaker, recent=recent)
    pods = PodReviews(
        view=view,
        groups=PodGroups(view.pod_groups),
        members=Members(client),
        admitter=admitter,
        notes=DecisionNotes(log=state.log, metrics=metrics, told=told, clock=clock),
        clock=clock,
        settings=AnswerSettings(gates_all=settings.gates_all),
    )
    groups = PodGroupReviews(
        policies=view.policies,
        namespaces=view.namespaces,
        admitter=admitter,
        pods=pods,
        client=client,
    )
    return Reviews(
        pods=pods,
        guard=PodGuard(told=told, trusted=(settings.extender, *settings.admins)),
        bindings=BindingGuard(
            client,
            writers=(settings.extender, *settings.admins),
            binders=(settings.scheduler, *settings.binders),
        ),
        templates=TemplateReviews(policies=view.policies, pods=pods, groups=groups),
        policies=PolicyReviews(
            view.policies,
            priorities=view.priorities,
            ledger=state.ledger,
            admins=settings.admins,
        ),
        breaker=breaker,
        recent=RecentCheck(
            recent, ledger=state.ledger, assumed=state.usage.assumed, breaker=breaker
        ),
    )
