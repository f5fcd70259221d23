"""All reviews of what users do to gangs that exist."""

from dataclasses import dataclass

from kube.api.client import KubeClient
from service.clock import Clock
from state.log.log import DecisionLog
from state.promises.promises import PromiseStore
from webhook.cluster_view import ClusterView
from webhook.guard.user_marks import UserMarks
from webhook.reviews.user_requests.cancel_reviews import CancelReviews
from webhook.reviews.user_requests.hold_reviews import HoldReviews
from webhook.reviews.user_requests.named_gangs import NamedGangs
from webhook.reviews.user_requests.swap_reviews import SwapReviews


@dataclass(frozen=True, slots=True, kw_only=True)
class UserReviews:
    """One review for each thing that users do."""

    holds: HoldReviews
    swaps: SwapReviews
    cancels: CancelReviews


def build_user_reviews(
    users: UserMarks,
    *,
    view: ClusterView,
    extender: str,
    client: KubeClient,
    promises: PromiseStore | None,
    log: DecisionLog,
    clock: Clock,
) -> UserReviews:
    """Build the reviews."""
    named = NamedGangs(client, view.namespaces)
    return UserReviews(
        holds=HoldReviews(users.holds, named, extender=extender, log=log, clock=clock),
        swaps=SwapReviews(users.swaps, named, promises=promises, log=log, clock=clock),
        cancels=CancelReviews(view.policies, users.roles, log=log, clock=clock),
    )
