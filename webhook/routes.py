"""The webhook over HTTP: one route for each kind of review.

Every review that we answer is a 200 with an AdmissionReview, a refusal included. Any other status
is a failed call, for which the API server follows the `failurePolicy` that the admin chose.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from policy.errors import ConflictError, RequestError, SpecError
from service.health import Health
from service.http import json_answer
from webhook.ledger_access.time_budget import parse_timeout, time_budget
from webhook.records.refusal_log import RefusalLog
from webhook.wire import ReviewRequest, ReviewResponse, format_review, parse_review, refuse
from webhook.wiring import WebhookReviews

Review = Callable[[ReviewRequest], Awaitable[ReviewResponse]]


async def respond(
    review: Review, request: ReviewRequest, *, refusals: RefusalLog
) -> ReviewResponse:
    """Run a review; refuse an object that is invalid or that lost a race. Refusals are logged."""
    try:
        response = await review(request)
    except (RequestError, SpecError, ConflictError) as exc:
        response = refuse(exc)
    refusals.note(request, response)
    return response


def add_routes(app: web.Application, reviews: WebhookReviews, health: Health) -> None:
    """Add the routes that the API server calls."""
    routes: dict[str, Review] = {
        "/mutate/pods": reviews.pods.mutate,
        "/shape/pods": reviews.pods.shape,
        "/validate/pods": reviews.guard.validate,
        "/mutate/holds": reviews.users.holds.mutate,
        "/mutate/swaps": reviews.users.swaps.mutate,
        "/validate/cancels": reviews.users.cancels.validate,
        "/validate/bindings": reviews.bindings.validate,
        "/mutate/templates": reviews.templates.mutate,
        "/shape/templates": reviews.templates.shape,
        "/validate/policies": reviews.policies.validate,
    }
    for path, review in routes.items():
        app.router.add_post(path, partial(_handle, review, health, reviews.refusals))


async def _handle(
    review: Review, health: Health, refusals: RefusalLog, http_request: web.Request
) -> web.Response:
    if not health.can_answer:
        error = f"webhook is not ready: {'; '.join(health.reasons())}"
        return json_answer({"error": error}, status=503)
    seconds = parse_timeout(http_request.query.get("timeout"))
    request = parse_review(await http_request.read())
    with time_budget(seconds):
        response = await respond(review, request, refusals=refusals)
    return json_answer(format_review(request.uid, response))
