"""Admission webhooks: matches stored configurations to a request, and calls the webhooks.

Differences from a real API server: `clientConfig.service` (there is no pod network) and
`reinvocationPolicy: IfNeeded` are refused, validating webhooks are called one after another, and
audit annotations are dropped.
"""

import base64
import functools
import logging
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import aiohttp
import cel
import orjson

from simulation.admission import review
from simulation.admission.review import AdmissionRequest, CallError
from simulation.objects import status
from simulation.objects.fields import Object
from simulation.objects.patch import PatchError
from simulation.objects.resources import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from simulation.objects.selectors import matches_selector
from simulation.objects.store import Store

logger = logging.getLogger(__name__)

Hook = Mapping[str, Any]
"""One webhook of a stored configuration."""

_DEFAULT_TIMEOUT_SECONDS = 10


class Webhooks:
    """Calls the webhooks that match a request."""

    def __init__(self, store: Store, session: aiohttp.ClientSession) -> None:
        self._store = store
        self._session = session

    def matching(self, resource: Resource, attributes: AdmissionRequest) -> list[Hook]:
        """Return the webhooks of one kind of configuration that match a request, in order."""
        if attributes.target.resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            return []
        configurations = self._store.list(resource)
        hooks = [hook for one in configurations for hook in one.get("webhooks") or ()]
        return [hook for hook in hooks if self._matches(hook, attributes)]

    async def mutate(self, hook: Hook, attributes: AdmissionRequest) -> AdmissionRequest:
        """Call a mutating webhook; return the request with the object as it changed it."""
        try:
            response = await self._ask(hook, attributes, mutating=True)
            if attributes.object is None:
                return attributes
            return replace(attributes, object=review.apply_patch(attributes.object, response))
        except PatchError as exc:
            # Not a failed call: failurePolicy does not apply.
            raise status.internal_error(str(exc)) from exc
        except CallError as exc:
            _fail_or_go_on(hook, exc)
            return attributes

    async def validate(self, hook: Hook, attributes: AdmissionRequest) -> None:
        """Call a validating webhook; raise its refusal."""
        try:
            await self._ask(hook, attributes, mutating=False)
        except CallError as exc:
            _fail_or_go_on(hook, exc)

    async def _ask(self, hook: Hook, attributes: AdmissionRequest, *, mutating: bool) -> Object:
        uid = str(uuid.uuid4())
        request = review.to_request(attributes, uid)
        kind = {"kind": "AdmissionReview", "apiVersion": review.API_VERSION}
        answer = await self._post(hook, {**kind, "request": request})
        response = review.from_review(answer, uid, mutating=mutating)
        attributes.warnings.extend(response.get("warnings") or ())
        review.check_allowed(hook["name"], response)
        return response

    async def _post(self, hook: Hook, body: Object) -> Any:  # noqa: ANN401 - foreign JSON
        seconds = int(hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT_SECONDS)
        try:
            async with self._session.post(
                hook["clientConfig"]["url"],
                params={"timeout": f"{seconds}s"},
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                ssl=_trust(hook["clientConfig"].get("caBundle", "")),
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                if response.status >= 300:
                    raise CallError(f"failed to call webhook: it answered {response.status}")
                return orjson.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            raise CallError(f"failed to call webhook: {exc!r}") from exc

    def _matches(self, hook: Hook, attributes: AdmissionRequest) -> bool:
        return (
            any(matches_rule(rule, attributes) for rule in hook.get("rules") or ())
            and self._matches_namespace(hook, attributes)
            and _matches_object(hook, attributes)
            and _meets_conditions(hook, attributes)
        )

    def _matches_namespace(self, hook: Hook, attributes: AdmissionRequest) -> bool:
        """Match the namespace selector; cluster-scoped objects always match."""
        target = attributes.target
        if target.resource is NAMESPACES:
            namespace = attributes.object or attributes.old_object
        else:
            namespace = self._store.find(NAMESPACES, ("", target.namespace))
        return namespace is None or matches_selector(hook.get("namespaceSelector"), namespace)


def matches_rule(rule: Mapping[str, Any], attributes: AdmissionRequest) -> bool:
    """Tell whether a rule matches the operation and the resource of a request."""
    target, resource = attributes.target, attributes.target.resource
    wanted = [one.partition("/") for one in rule["resources"]]
    return (
        rule.get("scope", "*") in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and not {"*", attributes.operation}.isdisjoint(rule["operations"])
        and not {"*", resource.group}.isdisjoint(rule["apiGroups"])
        and not {"*", resource.version}.isdisjoint(rule["apiVersions"])
        and any(
            plural in ("*", resource.plural) and sub in ("*", target.subresource)
            for plural, _, sub in wanted
        )
    )


def _matches_object(hook: Hook, attributes: AdmissionRequest) -> bool:
    known = [obj for obj in (attributes.object, attributes.old_object) if obj is not None]
    return any(matches_selector(hook.get("objectSelector"), obj) for obj in known)


def _meets_conditions(hook: Hook, attributes: AdmissionRequest) -> bool:
    """Evaluate the CEL match conditions; a false condition takes precedence over an error."""
    if not hook.get("matchConditions"):
        return True
    request = review.to_request(attributes)
    known = {"request": request, "object": request["object"], "oldObject": request["oldObject"]}
    results = [_evaluate(one["expression"], known) for one in hook["matchConditions"]]
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed and False not in results and hook.get("failurePolicy") != "Ignore":
        plural = attributes.target.resource.qualified
        raise status.forbidden(plural, attributes.name, repr(failed)) from failed
    return all(result is True for result in results)


def _evaluate(expression: str, known: Object) -> bool | Exception:
    try:
        return is_met(expression, known)
    except (LookupError, ValueError, TypeError, RuntimeError) as exc:
        return exc


def is_met(expression: str, known: Object) -> bool:
    """Evaluate a match condition. Raises LookupError, ValueError, TypeError or RuntimeError."""
    context = cel.Context(known)
    context.add_function("format", _format)  # the API server has it, the library does not
    return bool(_compile(expression).execute(context))


def _format(text: str, values: list[Any]) -> str:
    return text % tuple(map(str, values))


@functools.lru_cache(maxsize=64)
def _compile(expression: str) -> Any:  # noqa: ANN401 - the library has no public type
    return cel.compile(expression)


def _fail_or_go_on(hook: Hook, error: CallError) -> None:
    if hook.get("failurePolicy") != "Ignore":
        message = f'failed calling webhook "{hook["name"]}": {error}'
        raise status.internal_error(message) from error
    logger.warning("webhook failed open", extra={"webhook": hook["name"], "error": str(error)})


def check_configuration(kind: str, configuration: Object) -> None:
    """Refuse a configuration that is not valid, as a real API server does."""
    name = configuration["metadata"]["name"]
    for hook in configuration.get("webhooks") or ():
        client = hook.get("clientConfig") or {}
        if "service" in client or hook.get("reinvocationPolicy") == "IfNeeded":
            raise status.not_simulated("clientConfig.service or reinvocationPolicy IfNeeded")
        if not str(client.get("url", "")).startswith("https://"):
            why = "webhooks.clientConfig.url: Invalid value: 'https' is the only allowed URL scheme"
            raise status.invalid(kind, name, why)
        for field in ("name", "sideEffects", "admissionReviewVersions"):
            if not hook.get(field):
                raise status.invalid(kind, name, f"webhooks.{field}: Required value")
        try:
            [_compile(one["expression"]) for one in hook.get("matchConditions") or ()]
        except ValueError as exc:
            why = f"webhooks.matchConditions: Invalid value: {exc}"
            raise status.invalid(kind, name, why) from exc


@functools.lru_cache(maxsize=16)
def _trust(ca_bundle: str) -> ssl.SSLContext:
    """Trust the CA of the configuration; cached, so that connections are reused."""
    if not ca_bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(ca_bundle).decode())
