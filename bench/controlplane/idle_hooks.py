"""`python -m bench.controlplane.idle_hooks PORT CERTIFICATE KEY`: a webhook that allows everything.

It adds to the creation of a pod what any webhook adds: two calls of the API server.
"""

import ssl
import sys

import orjson
import uvloop
from aiohttp import web


async def allow(request: web.Request) -> web.Response:
    """Let an object through as it is."""
    uid = orjson.loads(await request.read())["request"]["uid"]
    answer = {"uid": uid, "allowed": True}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
    return web.Response(body=orjson.dumps(review), content_type="application/json")


def main() -> None:
    """Serve until killed."""
    port, certificate, key = sys.argv[1:]
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    app = web.Application(client_max_size=2**23)
    app.router.add_post("/{kind}", allow)
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(port),
        ssl_context=context,
        print=None,
        access_log=None,
        loop=uvloop.new_event_loop(),
    )


if __name__ == "__main__":
    main()
