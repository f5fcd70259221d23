"""Who may ask for reviews: with `--client-ca`, only whoever shows a certificate of that CA.

That is the API server, where the admin gave it one for us (its admission configuration). Probes and
metrics stay open: kubelets have no certificate. Without the flag the network must keep strangers
away; what a forged review charges expires within seconds.
"""

from aiohttp import web
from aiohttp.typedefs import Middleware

from certs.clients import read_client
from service.http import Handler, json_answer

_REVIEWS = ("/mutate/", "/validate/")


def demand_certificates() -> Middleware:
    """Build the check that runs before every answer."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(_REVIEWS) or _shows_certificate(request):
            return await handler(request)
        why = "reviews need a client certificate of the CA that --client-ca names"
        answer = json_answer({"error": why}, status=401)
        answer.force_close()  # another certificate is shown in another handshake only
        return answer

    return check


def _shows_certificate(request: web.Request) -> bool:
    """Tell whether the handshake verified a certificate that was made for calling."""
    connection = request.get_extra_info("ssl_object")
    der = connection.getpeercert(binary_form=True) if connection is not None else None
    return bool(der) and read_client(der) is not None
