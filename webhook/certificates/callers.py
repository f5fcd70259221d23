"""Which clients may request reviews: with `--client-ca`, only those with a certificate of that CA.

That is the API server, where the admin configured a certificate for our webhook. A CA that also
signs for other clients needs `--client-names`, the common names of the API server. Probes and
metrics stay open, since kubelets have no certificate. Without the flag, a NetworkPolicy must keep
other clients away; what a forged review charges expires within seconds.
"""

from collections.abc import Collection

from aiohttp import web
from aiohttp.typedefs import Middleware

from certs.clients import client_of
from service.http import Handler, json_answer

_REVIEWS = ("/mutate/", "/validate/")
_UNKNOWN = "reviews require a client certificate of the CA in --client-ca"
_UNNAMED = "reviews require a client certificate with a common name listed in --client-names"


def require_client_certificate(names: Collection[str] = ()) -> Middleware:
    """Build the middleware that checks callers of reviews; empty `names` allow any name."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(_REVIEWS):
            return await handler(request)
        client = client_of(request.get_extra_info("ssl_object"))
        if client is not None and (not names or client.name in names):
            return await handler(request)
        answer = json_answer({"error": _UNNAMED if client else _UNKNOWN}, status=401)
        answer.force_close()  # only another handshake can present another certificate
        return answer

    return check
