"""The HTTP side of the simulated API server: paths, parameters, bodies, headers, errors. JSON only.

The path of a request is looked up in the table of resources (`simulation.objects.resources`), and
`simulation.api.verbs` executes the request.
"""

import base64
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial

import aiohttp
import orjson
from aiohttp import web

from service.http import Handler
from simulation.admission import checks
from simulation.admission.admission import AdmissionChain
from simulation.admission.review import AdmissionRequest
from simulation.admission.webhooks import Webhooks
from simulation.api import watch
from simulation.api.token_reviews import (
    AUTHENTICATION_PATH,
    AUTHORIZATION_PATH,
    review_access,
    review_token,
)
from simulation.api.verbs import ApiVerbs
from simulation.objects import patch, status
from simulation.objects.fields import Object, key_of
from simulation.objects.identity import Tokens
from simulation.objects.patch import PatchError
from simulation.objects.resources import Target, parse_path
from simulation.objects.selectors import Selects, build_selects, parse_number
from simulation.objects.status import ApiError
from simulation.objects.store import Store

VERSION = {"major": "1", "minor": "37", "gitVersion": "v1.37.0+simulated", "platform": "simulated"}

_BODY_BYTES = 3 * 1024 * 1024
_PATCHES: dict[str, Callable[..., Object]] = {
    "application/merge-patch+json": patch.merge_patch,
    "application/strategic-merge-patch+json": patch.strategic_merge_patch,
    "application/json-patch+json": patch.json_patch,
}

_WARNINGS = web.RequestKey("warnings", list[str])


class ApiServer:
    """Serves the objects of one store."""

    def __init__(
        self, store: Store, *, tokens: Tokens, now: Callable[[], float], rng: random.Random
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._now = now
        self._rng = rng
        self._verbs: ApiVerbs | None = None
        self._watches: list[watch.Watch] = []

    def build_app(self) -> web.Application:
        """Build the aiohttp application, which also owns the HTTP session to webhooks."""
        app = web.Application(client_max_size=_BODY_BYTES, middlewares=[_finish])
        app.router.add_get("/version", _version)
        app.router.add_get("/readyz", _ok)
        app.router.add_get("/livez", _ok)
        app.router.add_post(AUTHENTICATION_PATH, self._review_token)
        app.router.add_post(AUTHORIZATION_PATH, self._review_access)
        app.router.add_route("*", "/{path:.*}", self._answer)
        app.cleanup_ctx.append(self._open)
        app.on_shutdown.append(self._end_watches)
        return app

    async def _open(self, _: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as session:
            admission = AdmissionChain(self._store, Webhooks(self._store, session))
            self._verbs = ApiVerbs(self._store, admission, now=self._now, rng=self._rng)
            yield

    async def _end_watches(self, _: web.Application) -> None:
        for one in self._watches:
            one.close()
        self._store.wake_all()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        target = parse_path(request.path)
        user = self._tokens.identify(request.headers)
        attributes = AdmissionRequest(
            target=target, user=user, warnings=request[_WARNINGS], is_dry_run=_is_dry_run(request)
        )
        match request.method, target.subresource, bool(target.name):
            case "GET", "" | "status", True:
                key = (target.namespace, target.name)
                return _json(self._store.get(target.resource, key))
            case "GET", "", False if request.query.get("watch") in ("true", "1"):
                return await self._watch(request, target)
            case "GET", "", False:
                return _json(self._list(request, target))
            case _:
                return await self._write(request, attributes)

    async def _review_token(self, request: web.Request) -> web.Response:
        self._tokens.identify(request.headers)
        return _json(review_token(await _body(request), self._tokens), code=201)

    async def _review_access(self, request: web.Request) -> web.Response:
        self._tokens.identify(request.headers)
        return _json(review_access(await _body(request)), code=201)

    async def _write(self, request: web.Request, attributes: AdmissionRequest) -> web.Response:
        assert self._verbs is not None, "the application was started"
        target = attributes.target
        is_simulated = request.method != "DELETE" and target.subresource != "binding"
        if attributes.is_dry_run and not is_simulated:
            raise status.not_simulated("a dry run of a deletion or a binding")
        scoped = bool(target.namespace) == target.resource.namespaced
        match request.method, target.subresource, bool(target.name):
            case "POST", "", False if scoped:
                body = await _body(request)
                return _json(await self._verbs.create(attributes, body), code=201)
            case "POST", "binding", True:
                body = await _body(request)
                return _json(await self._verbs.bind(attributes, body), code=201)
            case "PUT", "" | "status", True:
                body = await _body(request)
                change = partial(checks.replacement, target, body=body)
                return _json(await self._verbs.update(attributes, change))
            case "PATCH", "" | "status", True:
                return _json(await self._verbs.update(attributes, await _patch(request)))
            case "DELETE", "", True:
                return _json(await self._verbs.delete(attributes, await _delete_options(request)))
        message = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", message)

    def _list(self, request: web.Request, target: Target) -> Object:
        query, resource = request.query, target.resource
        token = _parse_continue(query.get("continue", ""))
        exact = query.get("resourceVersionMatch") == "Exact"
        asked = token[0] if token else parse_number(query, "resourceVersion") if exact else 0
        revision = asked or self._store.revision
        known = self._store.snapshot(resource, revision=revision)
        selects = _selects(request, target)
        left = [obj for obj in known if selects(obj) and (not token or key_of(obj) > token[1])]
        limit = parse_number(query, "limit") or len(left)
        metadata: Object = {"resourceVersion": str(revision)}
        if len(left) > limit:
            metadata["continue"] = _format_continue(revision, left[limit - 1])
            metadata["remainingItemCount"] = len(left) - limit
        kind = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        return {**kind, "metadata": metadata, "items": [_bare(obj) for obj in left[:limit]]}

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = watch.parse_options(request.query)
        selects = _selects(request, target)
        stream = watch.Watch(self._store, target.resource, selects=selects, options=options)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches.append(stream)
        try:
            async with aclosing(stream.events()) as events:
                async for event in events:
                    await response.write(orjson.dumps(event) + b"\n")
        finally:
            self._watches.remove(stream)
        return response


@web.middleware
async def _finish(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into Status objects, and add the warnings of webhooks to the answer."""
    warnings = request[_WARNINGS] = list[str]()
    try:
        response = await handler(request)
    except ApiError as error:
        response = _json(error.to_status(), code=error.code)
    except PatchError as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        response = _json(ApiError(422, "Invalid", message).to_status(), code=422)
    for text in dict.fromkeys(warnings):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def _is_dry_run(request: web.Request) -> bool:
    """Whether nothing is to be stored; a value that Kubernetes does not know is refused."""
    given = request.query.get("dryRun", "")
    if given not in ("", "All"):
        raise status.bad_request(f'dryRun: Unsupported value: "{given}": supported values: "All"')
    return given == "All"


async def _version(_: web.Request) -> web.Response:
    return _json(VERSION)


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _json(body: Object, *, code: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=code, content_type="application/json")


async def _body(request: web.Request) -> Object:
    if request.content_type not in ("application/json", "application/octet-stream"):
        raise status.unreadable(request.content_type)
    body = await _read(request)
    if not isinstance(body, dict):
        raise status.bad_request("the body must be an object")
    return body


async def _read(request: web.Request) -> object:
    try:
        return orjson.loads(await request.read())
    except orjson.JSONDecodeError as exc:
        raise status.bad_request(f"the body is not JSON: {exc}") from exc


async def _patch(request: web.Request) -> Callable[[Object], Object]:
    apply = _PATCHES.get(request.content_type)
    if apply is None:
        raise status.unreadable(request.content_type)
    body = await _read(request)
    if not isinstance(body, list if apply is patch.json_patch else dict):
        raise status.bad_request("the body does not match the content type of the patch")
    return lambda old: apply(old, body)


async def _delete_options(request: web.Request) -> Object:
    options = await _body(request) if request.can_read_body else {}
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = parse_number(request.query, "gracePeriodSeconds")
    return options


def _selects(request: web.Request, target: Target) -> Selects:
    return build_selects(
        target.resource,
        namespace=target.namespace,
        label_selector=request.query.get("labelSelector", ""),
        field_selector=request.query.get("fieldSelector", ""),
    )


def _bare(obj: Object) -> Object:
    """Return an item of a list, which does not repeat the kind."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _format_continue(revision: int, last: Object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([revision, *key_of(last)])).decode()


def _parse_continue(text: str) -> tuple[int, tuple[str, str]] | None:
    if not text:
        return None
    try:
        revision, namespace, name = orjson.loads(base64.urlsafe_b64decode(text))
    except ValueError as exc:
        raise status.bad_request(f"continue key is not valid: {exc}") from exc
    return int(revision), (str(namespace), str(name))
