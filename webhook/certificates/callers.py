"""Who may ask for reviews: with `--client-ca`, only whoever shows a certificate of that CA.

That is the API server, where the admin gave it one for us (its admission configuration). A CA that
signs for others, too, needs `--client-names`: which names are the API server's. Probes and metrics
stay open: kubelets have no certificate. Without the flag the network must keep strangers
away; what a forged review charges expires within seconds.
"""

from collections.abc import Collection

from aiohttp import web
from aiohttp.typedefs import Middleware

from certs.clients import Client, read_client
from service.http import Handler, json_answer

_REVIEWS = ("/mutate/", "/validate/")
_UNKNOWN = "reviews need a client certificate of the CA that --client-ca names"
_UNNAMED = "reviews need a client certificate with one of the common names of --client-names"


def demand_certificates(names: Collection[str] = ()) -> Middleware:
    """Build the check that runs before every answer; without `names` every name will do."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(_REVIEWS):
            return await handler(request)
        client = _client_of(request)
        if client is not None and (not names or client.name in names):
            return await handler(request)
        answer = json_answer({"error": _UNNAMED if client else _UNKNOWN}, status=401)
        answer.force_close()  # another certificate is shown in another handshake only
        return answer

    return check


def _client_of(request: web.Request) -> Client | None:
    """Return whose certificate the handshake verified, if it was made for calling."""
    connection = request.get_extra_info("ssl_object")
    der = connection.getpeercert(binary_form=True) if connection is not None else None
    return read_client(der) if der else None
