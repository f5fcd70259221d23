"""The access to an extender that serves TLS: one check before every answer.

    /healthz /readyz /leader   every caller: kubelets and load balancers have no credentials
    /v1/extender/…             only kube-scheduler's client certificate: verbs can bind pods
    /v1/calendar /v1/queue /v1/windows /v1/runs /v1/usage /v1/predictions /v1/limits
                               every Kubernetes token, for what concerns its owner; all, if its
                               owner has the right of the next line
    everything else            any client certificate of our CA, or a Kubernetes token whose owner
                               may `get` (or `post`) that path, by RBAC's `nonResourceURLs`

The check goes by the route that will answer the request, not by the text of its path; paths that
do not exist are refused to unknown callers like any other. Metrics are no exception, because they
name VCs; the role that Prometheus has for Kubernetes' own metrics covers ours, too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aiohttp import web

from certs.clients import SCHEDULER, Client, client_of
from extender.inspection.tokens import TokenCheck
from kube.api.token_reviews import ApiUser
from service.http import Handler, json_answer

INSPECTOR_ROLE: Final = "cellgate-inspector"
"""The ClusterRole of our manifests that may read inspection."""

OPEN: Final = frozenset({"/healthz", "/readyz", "/leader"})
VERBS: Final = "/v1/extender/"
OWN: Final = frozenset(
    {
        "/v1/calendar",
        "/v1/limits",
        "/v1/predictions",
        "/v1/queue",
        "/v1/runs",
        "/v1/usage",
        "/v1/windows",
    }
)
"""What every user may read as far as it is about the own gangs, or about VCs open to the user."""
CALLER: Final = web.RequestKey("caller", ApiUser)
"""The key of a request that came with a token: its owner."""
OWN_ONLY: Final = web.RequestKey("own_only", str)
"""The key of a request whose caller may read only that: the name of the caller."""
_BEARER: Final = re.compile(r"[Bb]earer +([\x21-\x7e]{1,8192}) *")


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    why: str


class AccessGuard:
    """Passes requests that are allowed, and tells other callers what is missing."""

    def __init__(self, tokens: TokenCheck, *, utc_now: Callable[[], datetime]) -> None:
        self._tokens = tokens
        self._utc_now = utc_now

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check a request, as aiohttp does before its handler runs."""
        refusal = await self._check(request)
        return await handler(request) if refusal is None else _answer(refusal)

    async def _check(self, request: web.Request) -> _Refusal | None:
        route = _route_of(request)
        if route in OPEN:
            return None
        client = client_of(request.get_extra_info("ssl_object"))
        if client is not None and client.expires <= self._utc_now():
            return _Refusal(401, f"the client certificate of {client.name} has expired")
        if route.startswith(VERBS):
            return _check_scheduler(client)
        return await self._check_token(request) if client is None else None

    async def _check_token(self, request: web.Request) -> _Refusal | None:
        token = _token_of(request)
        if token is None:
            return _Refusal(401, "send a Kubernetes token: Authorization: Bearer TOKEN")
        person = await self._tokens.identify(token)
        if person is None:
            return _Refusal(401, "the API server does not know this token, or it has expired")
        request[CALLER] = person
        verb = "get" if request.method == "HEAD" else request.method.lower()
        if not await self._tokens.may(person, verb=verb, path=request.path):
            if _route_of(request) in OWN:
                request[OWN_ONLY] = person.name
                return None
            return _Refusal(
                403,
                f"{person.name} may not {verb} {request.path}: "
                f"bind a ClusterRole that allows it, such as {INSPECTOR_ROLE}",
            )
        return None


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


def _check_scheduler(client: Client | None) -> _Refusal | None:
    if client is None:
        return _Refusal(
            401, f"verbs need the client certificate of {SCHEDULER}; tokens are not accepted"
        )
    if client.name != SCHEDULER:
        return _Refusal(403, f"{client.name} may not call verbs; only {SCHEDULER} may")
    return None


def _token_of(request: web.Request) -> str | None:
    """Return the bearer token; None if there is none, or more than one header."""
    headers = request.headers.getall("Authorization", [])
    found = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
    return found[1] if found else None


def _answer(refusal: _Refusal) -> web.Response:
    """Refuse, and close: a caller can show another certificate only in a new handshake."""
    answer = json_answer({"error": refusal.why}, status=refusal.status)
    if refusal.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    answer.force_close()
    return answer
