"""All kinds of reviews, put together over one view of the cluster and one ledger."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from kube.client import KubeClient
from kube.events import EventWriter
from policy.limits import Scope
from policy.submission import UserName
from service.clock import Clock
from state.ledger import Ledger
from state.log import DecisionLog
from webhook.admitting import Admitter
from webhook.answers import AnswerSettings
from webhook.bindings import BindingGuard
from webhook.breaker import Breaker
from webhook.by_memory import LiveUsage
from webhook.catching_up import catch_up
from webhook.cluster_view import ClusterView
from webhook.guarding import PodGuard
from webhook.members import Members
from webhook.metrics import WebhookMetrics
from webhook.notes import DecisionNotes
from webhook.podgroup_reviews import PodGroupReviews
from webhook.podgroups import PodGroups
from webhook.pods import PodReviews
from webhook.policies import PolicyReviews
from webhook.recent import RecentCheck, RecentGangs
from webhook.settings import WebhookSettings
from webhook.templates import TemplateReviews
from webhook.told import ToldPods

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
    events: EventWriter,
    metrics: WebhookMetrics,
) -> Reviews:
    """Put everything together that answers."""
    clock, told = Clock(), ToldPods(events)
    breaker = Breaker(
        partial(state.ledger.usage, _ANYBODY),
        catch_up=partial(catch_up, state.ledger, state.usage.assumed),
    )
    recent = RecentGangs(monotonic=clock.monotonic)
    admitter = Admitter(ledger=state.ledger, usage=state.usage, breaker=breaker, recent=recent)
    pods = PodReviews(
        view=view,
        groups=PodGroups(view.pod_groups, client),
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
