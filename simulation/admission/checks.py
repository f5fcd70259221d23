"""Rules for the bodies of create and update requests, and fields that only the server sets."""

import re

from simulation.admission.webhooks import check_configuration
from simulation.objects import pods, status
from simulation.objects.fields import Object, clone, version_of
from simulation.objects.resources import (
    MUTATING_WEBHOOKS,
    PODS,
    PRIORITY_CLASSES,
    VALIDATING_WEBHOOKS,
    Target,
)
from simulation.objects.status import ApiError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# Set once by the server; what a client sends in them is ignored.
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def from_body(target: Target, body: Object) -> Object:
    """Return the object to create, without server fields; 400 if it has another kind."""
    _check_shape(target, body)
    obj = clone(body)
    metadata = obj["metadata"]
    for field in _SERVER_FIELDS:
        metadata.pop(field, None)
    if metadata.get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    if target.namespace and metadata.setdefault("namespace", target.namespace) != target.namespace:
        message = "the namespace of the provided object does not match the namespace"
        raise status.bad_request(f"{message} sent on the request")
    if target.resource is PRIORITY_CLASSES:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return obj


def check_new(target: Target, obj: Object) -> None:
    """Refuse (422) a new object that breaks a rule of its kind."""
    name = obj["metadata"]["name"]
    if not _NAME.fullmatch(name):
        why = f'metadata.name: Invalid value: "{name}": must be a lowercase RFC 1123 subdomain'
        raise status.invalid(target.resource.kind, name, why)
    if target.resource is PODS:
        pods.check_new(obj)
    _check_always(target, obj)


def prepared_update(target: Target, *, old: Object, new: Object) -> Object:
    """Return the new object without fields that this path cannot change; 409 for an old version."""
    _check_shape(target, new)
    resource, metadata = target.resource, dict(new["metadata"])
    if metadata.setdefault("name", target.name) != target.name:
        message = f"the name of the object ({metadata['name']}) does not match the name on the URL"
        raise status.bad_request(f"{message} ({target.name})")
    if metadata.get("uid") not in (None, "", old["metadata"]["uid"]):
        why = f'metadata.uid: Invalid value: "{metadata["uid"]}": field is immutable'
        raise status.invalid(resource.kind, target.name, why)
    check_preconditions(target, old, wanted={"resourceVersion": metadata.get("resourceVersion")})
    for field in (*_SERVER_FIELDS, "namespace", "resourceVersion"):
        metadata.pop(field, None)
        metadata |= {field: old["metadata"][field]} if field in old["metadata"] else {}
    if target.subresource == "status":
        return {**old, "metadata": metadata, "status": new.get("status") or {}}
    result = {**new, "metadata": metadata}
    if resource.has_status:
        result.pop("status", None)
        result |= {"status": old["status"]} if "status" in old else {}
    return result


def replacement(target: Target, old: Object, *, body: Object) -> Object:
    """Return the body of a PUT, if it matches this object."""
    metadata = body.get("metadata") or {}
    check_preconditions(target, old, wanted={"uid": metadata.get("uid")})
    if not (metadata.get("resourceVersion") or target.resource.unconditional_update):
        why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        raise status.invalid(target.resource.kind, target.name, why)
    return body


def check_update(target: Target, *, old: Object, new: Object) -> None:
    """Refuse (422) a change that a rule of its kind forbids."""
    if target.resource is PODS and not target.subresource:
        pods.check_update(old, new)
    if target.resource is PRIORITY_CLASSES and new.get("value") != old.get("value"):
        why = "value: Forbidden: may not be changed in an update"
        raise status.invalid(target.resource.kind, target.name, why)
    _check_always(target, new)


def check_preconditions(target: Target, obj: Object, *, wanted: Object) -> None:
    """Refuse (409) if the object has another UID or version than the client expects."""
    plural, uid = target.resource.qualified, obj["metadata"]["uid"]
    if wanted.get("uid") not in (None, "", uid):
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, in object meta: {uid}"
        raise status.conflict(plural, target.name, why)
    if wanted.get("resourceVersion") not in (None, "", version_of(obj)):
        raise status.conflict(plural, target.name)


def _check_shape(target: Target, body: Object) -> None:
    """Refuse (400) what a real API server could not decode; later code relies on the shape."""
    resource = target.resource
    given = (body.get("apiVersion") or resource.api_version, body.get("kind") or resource.kind)
    if given != (resource.api_version, resource.kind):
        raise status.bad_request(f"{given[1]} in {given[0]} cannot be handled as a {resource.kind}")
    metadata = body.get("metadata")
    maps = (metadata, body.get("spec") or {}, body.get("status") or {})
    if not all(isinstance(one, dict) for one in maps):
        raise status.bad_request("metadata, spec and status must be objects")
    for field in ("labels", "annotations"):
        values = (metadata or {}).get(field) or {}
        if not (isinstance(values, dict) and all(isinstance(one, str) for one in values.values())):
            raise status.bad_request(f"metadata.{field} must be a map of strings")


def _check_always(target: Target, obj: Object) -> None:
    if obj["metadata"].get("finalizers"):
        raise status.not_simulated("an object with finalizers")
    if target.resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        check_configuration(target.resource.kind, obj)
