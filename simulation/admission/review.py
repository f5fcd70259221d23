"""AdmissionReview: requests to webhooks, and their responses. Pure."""

import base64
from dataclasses import dataclass, field
from typing import Any

import orjson

from policy.errors import CellgateError
from simulation.objects.fields import Key, Object
from simulation.objects.identity import User
from simulation.objects.patch import json_patch
from simulation.objects.resources import Target
from simulation.objects.status import ApiError

API_VERSION = "admission.k8s.io/v1"


class CallError(CellgateError):
    """A webhook could not be called or broke the protocol: its failurePolicy applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """One request as admission sees it; a deletion has no object, a creation no old object."""

    target: Target
    user: User
    operation: str = ""
    """CREATE, UPDATE or DELETE."""
    is_dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    """Warnings of webhooks, sent to the client in headers."""
    object: Object | None = None
    old_object: Object | None = None

    @property
    def key(self) -> Key:
        """The key of the object."""
        return self.target.namespace, self.target.name

    @property
    def name(self) -> str:
        """The name of the object; empty until it is generated."""
        return str(self.target.name or (self.object or {})["metadata"].get("name", ""))


def to_request(attributes: AdmissionRequest, uid: str = "") -> Object:
    """Return the request as webhooks and their match conditions see it."""
    target, resource = attributes.target, attributes.target.resource
    group = {"group": resource.group, "version": resource.version}
    kind = {**group, "kind": "Binding" if target.subresource == "binding" else resource.kind}
    plural = {**group, "resource": resource.plural}
    options = f"{attributes.operation.capitalize()}Options"
    request: Object = {
        "uid": uid,
        **{"kind": kind, "requestKind": kind, "resource": plural, "requestResource": plural},
        **{"name": attributes.name, "namespace": target.namespace},
        "operation": attributes.operation,
        "userInfo": attributes.user.to_user_info(),
        **{"object": attributes.object, "oldObject": attributes.old_object},
        "dryRun": attributes.is_dry_run,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
    }
    subresource = dict.fromkeys(("subResource", "requestSubResource"), target.subresource)
    return request | (subresource if target.subresource else {})


def from_review(answer: Any, uid: str, *, mutating: bool) -> Object:  # noqa: ANN401 - foreign JSON
    """Return the response of a review; CallError if it breaks the protocol."""
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        raise CallError("webhook response was absent")
    if response.get("uid") != uid:
        raise CallError(f'expected response.uid="{uid}", got "{response.get("uid")}"')
    if (answer.get("apiVersion"), answer.get("kind")) != (API_VERSION, "AdmissionReview"):
        raise CallError(f"expected webhook response of {API_VERSION}, Kind=AdmissionReview")
    given = [field for field in ("patch", "patchType") if response.get(field)]
    if given and not mutating:
        raise CallError(f"validating webhook may not return response.{given[0]}")
    if len(given) == 1 or (given and response["patchType"] != "JSONPatch"):
        raise CallError("response.patch and response.patchType=JSONPatch go together")
    return response


def check_allowed(webhook: str, response: Object) -> None:
    """Raise a refusal as an error for the client, with the code and reason of the webhook."""
    if response.get("allowed"):
        return
    given = response.get("status") or {}
    why, reason = given.get("message") or given.get("reason"), given.get("reason") or ""
    message = f'admission webhook "{webhook}" denied the request'
    message += f": {why}" if why else " without explanation"
    raise ApiError(max(400, int(given.get("code") or 0)), reason, message, given.get("details"))


def apply_patch(obj: Object, response: Object) -> Object:
    """Apply the patch of a mutating webhook; PatchError if it does not match the object."""
    if not response.get("patch"):
        return obj
    try:
        operations = orjson.loads(base64.b64decode(response["patch"], validate=True))
    except ValueError as exc:
        raise CallError("received undecodable patch in webhook response") from exc
    return json_patch(obj, operations)
