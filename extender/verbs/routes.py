"""kube-scheduler's verbs over HTTP.

Filter and bind report every expected failure as a 200 with `Error`, because kube-scheduler ignores
the body of any other status. Prioritize and preempt have no such field and answer 4xx or 5xx.
"""

import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from extender.leader_role import LeaderRole, NotLeadingError
from extender.metrics import ExtenderMetrics
from extender.verbs import wire
from extender.verbs_wiring import ExtenderVerbs
from policy.errors import RequestError
from service.bodies import parse_body
from service.health import Health
from service.http import encode_json, json_answer, raw_json_answer, read_body
from service.tasks import in_slices

Verb = Callable[[bytes, web.Request], Awaitable[bytes]]


class VerbRoutes:
    """`/v1/extender/…`, which kube-scheduler calls."""

    def __init__(
        self, verbs: ExtenderVerbs, leading: LeaderRole, health: Health, metrics: ExtenderMetrics
    ) -> None:
        self._verbs = verbs
        self._leading = leading
        self._health = health
        self._metrics = metrics

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        for name, verb, has_error in (
            ("filter", self._filter, True),
            ("prioritize", self._prioritize, False),
            ("preempt", self._preempt, False),
            ("bind", self._bind, True),
        ):
            handler = self._handler(name, verb, has_error=has_error)
            app.router.add_post(f"/v1/extender/{name}", handler)

    def _handler(
        self, name: str, verb: Verb, *, has_error: bool
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        seconds = {
            outcome: self._metrics.verb_seconds.labels(name, outcome)
            for outcome in ("answered", "refused", "not-ready")
        }

        async def handle(request: web.Request) -> web.Response:
            began = time.perf_counter()
            outcome = "answered"
            try:
                if not self._leading.is_leading:
                    outcome = "not-ready"
                    return self._not_leading(has_error=has_error)
                return raw_json_answer(await verb(await read_body(request), request))
            except (RequestError, NotLeadingError) as exc:
                outcome = "refused"
                return _failure(str(exc), 400, has_error=has_error)
            finally:
                seconds[outcome].observe(time.perf_counter() - began)

        return handle

    def _not_leading(self, *, has_error: bool) -> web.Response:
        """Refuse, and close the connection, so that the next one may reach the leader."""
        reasons = "; ".join(self._health.reasons()) or "this replica is not the leader"
        answer = _failure(f"extender is not ready: {reasons}", 503, has_error=has_error)
        answer.force_close()
        return answer

    async def _filter(self, body: bytes, _: web.Request) -> bytes:
        return await in_slices(self._verbs.filter.filter_stepwise(body))

    async def _prioritize(self, body: bytes, _: web.Request) -> bytes:
        return encode_json(self._verbs.filter.prioritize(parse_body(wire.FilterArguments, body)))

    async def _preempt(self, body: bytes, _: web.Request) -> bytes:
        arguments = parse_body(wire.PreemptArguments, body)
        await in_slices(self._verbs.preemption.prepare_stepwise(arguments.pod))
        return encode_json(self._verbs.preemption.preempt(arguments))

    async def _bind(self, body: bytes, request: web.Request) -> bytes:
        def is_open() -> bool:
            return request.transport is not None and not request.transport.is_closing()

        arguments = parse_body(wire.BindArguments, body)
        return encode_json(await self._verbs.binding.bind(arguments, is_open=is_open))


def _failure(message: str, status: int, *, has_error: bool) -> web.Response:
    if has_error:
        return json_answer(wire.error_answer(message))
    return json_answer({"error": message}, status=status)
