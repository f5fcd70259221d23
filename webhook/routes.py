"""The webhook over HTTP: one route for each kind of review.

Every review that we answer is a 200 with an AdmissionReview, a refusal included. Any other status
is a failed call, for which the API server follows the `failurePolicy` that the admin chose.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from policy.errors import ConflictError, RequestError, SpecError
from service.health import Health
from service.http import json_answer
from webhook.ledger_access.time_budget import parse_timeout, time_budget
from webhook.wire import ReviewRequest, ReviewResponse, format_review, parse_review, refuse
from webhook.wiring import WebhookReviews

Review = Callable[[ReviewRequest], Awaitable[ReviewResponse]]


async def respond(review: Review, request: ReviewRequest) -> ReviewResponse:
    """Run a review; refuse an object that is invalid or that lost a race."""
    try:
        return await review(request)
    except (RequestError, SpecError, ConflictError) as exc:
        return refuse(exc)


class ReviewRoutes:
    """Adds the routes that the API server calls."""

    def __init__(self, reviews: WebhookReviews, health: Health) -> None:
        self._reviews = reviews
        self._health = health

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        self._add(app, "/mutate/pods", self._reviews.pods.mutate)
        self._add(app, "/validate/pods", self._reviews.guard.validate)
        self._add(app, "/validate/bindings", self._reviews.bindings.validate)
        self._add(app, "/mutate/templates", self._reviews.templates.mutate)
        self._add(app, "/validate/policies", self._reviews.policies.validate)

    def _add(self, app: web.Application, path: str, review: Review) -> None:
        async def handle(http_request: web.Request) -> web.Response:
            if not self._health.can_answer:
                reasons = "; ".join(self._health.reasons())
                return json_answer({"error": f"webhook is not ready: {reasons}"}, status=503)
            seconds = parse_timeout(http_request.query.get("timeout"))
            request = parse_review(await http_request.read())
            with time_budget(seconds):
                response = await respond(review, request)
            return json_answer(format_review(request.uid, response))

        app.router.add_post(path, handle)
