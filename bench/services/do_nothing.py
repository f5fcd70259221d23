"""`python -m bench.services.do_nothing PORT`: an extender that passes every node, scores none."""

import sys

from aiohttp import web


async def pass_all(request: web.Request) -> web.Response:
    """Leave every node."""
    arguments = await request.json()
    return web.json_response({"NodeNames": arguments["NodeNames"], "Error": ""})


async def prefer_none(_: web.Request) -> web.Response:
    """Score nothing."""
    return web.json_response([])


if __name__ == "__main__":
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/extender/filter", pass_all)
    app.router.add_post("/v1/extender/prioritize", prefer_none)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
