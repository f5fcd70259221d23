"""Executes the verbs, without HTTP: from a parsed request to a stored object.

A write reads the object, runs admission, and stores the result only if the object has not changed
meanwhile. Otherwise it is repeated with the newer object, and then fails if the client requires the
old version.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import replace

from simulation.admission import checks
from simulation.admission.admission import AdmissionChain
from simulation.admission.review import AdmissionRequest
from simulation.objects import pods, status
from simulation.objects.fields import Object, clone, format_time, version_of
from simulation.objects.resources import NAMESPACES, PODS, Target
from simulation.objects.status import ApiError
from simulation.objects.store import Store

_TRIES = 5
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class ApiVerbs:
    """Create, update, delete and bind."""

    def __init__(
        self,
        store: Store,
        admission: AdmissionChain,
        *,
        now: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self._store = store
        self._admission = admission
        self._now = now
        self._rng = rng

    async def create(self, request: AdmissionRequest, body: Object) -> Object:
        """Admit and store a new object; a dry run stores nothing."""
        target = request.target
        if target.resource.namespaced:
            self._store.get(NAMESPACES, ("", target.namespace))
        new = checks.from_body(target, body)
        request = replace(request, operation="CREATE", object=new)
        admitted = await self._admission.mutate(request)
        obj = self._complete(target, admitted.object or new)
        checks.check_new(target, obj)
        await self._admission.validate(replace(request, object=obj))
        if request.is_dry_run:
            return self._check_free(target, obj)
        return self._store.create(target.resource, obj)

    async def update(self, request: AdmissionRequest, change: Callable[[Object], Object]) -> Object:
        """Admit and store a changed object; `change` builds it from the current object.

        A dry run stores nothing.
        """
        for attempt in range(1, _TRIES + 1):
            old = self._store.get(request.target.resource, request.key)
            new = await self._admit_update(request, old=old, new=change(old))
            if request.is_dry_run:
                return new
            try:
                return self._store.update(request.target.resource, new, expected=version_of(old))
            except ApiError as error:
                if error.code != 409 or attempt == _TRIES:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _admit_update(self, request: AdmissionRequest, *, old: Object, new: Object) -> Object:
        new = checks.prepared_update(request.target, old=old, new=new)
        request = replace(request, operation="UPDATE", object=new, old_object=old)
        new = (await self._admission.mutate(request)).object or new
        checks.check_update(request.target, old=old, new=new)
        await self._admission.validate(replace(request, object=new))
        return new

    async def delete(self, request: AdmissionRequest, options: Object) -> Object:
        """Remove an object, or mark a running pod for deletion by its kubelet."""
        resource = request.target.resource
        if resource is NAMESPACES:
            raise status.not_simulated("deleting a namespace")
        obj = self._store.get(resource, request.key)
        attributes = replace(request, operation="DELETE", old_object=obj)
        await self._admission.validate(await self._admission.mutate(attributes))
        obj = self._store.get(resource, request.key)
        checks.check_preconditions(request.target, obj, wanted=options.get("preconditions") or {})
        grace = pods.grace_seconds(obj, options) if resource is PODS else 0
        if grace > 0:
            return self._mark_deleted(obj, grace)
        self._store.remove(resource, request.key)
        if resource.returns_deleted:
            return obj
        details = {"name": request.target.name, "group": resource.group, "kind": resource.plural}
        return status.success(200, {**details, "uid": obj["metadata"]["uid"]})

    def _mark_deleted(self, pod: Object, grace: int) -> Object:
        """Mark a pod; a second deletion can only shorten the grace period."""
        if grace >= pod["metadata"].get("deletionGracePeriodSeconds", grace + 1):
            return pod
        ends = format_time(self._now() + grace)
        marked = clone(pod)
        marked["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace}
        return self._store.update(PODS, marked, expected=version_of(pod))

    async def bind(self, request: AdmissionRequest, binding: Object) -> Object:
        """Set the node of a pod; 409 if it has one, or does not match the binding."""
        name = request.target.name
        if (binding.get("metadata") or {}).get("name") != name:
            raise status.bad_request("name in URL does not match name in Binding object")
        if not (binding.get("target") or {}).get("name"):
            raise status.invalid("Binding", name, "target.name: Required value")
        attributes = await self._admission.mutate(
            replace(request, operation="CREATE", object=binding)
        )
        await self._admission.validate(attributes)
        binding = attributes.object or binding
        pod = self._store.get(PODS, request.key)
        checks.check_preconditions(request.target, pod, wanted=binding["metadata"])
        bound = pods.bind(pod, binding, now=self._now())
        self._store.update(PODS, bound, expected=version_of(pod))
        return status.success(201)

    def _check_free(self, target: Target, obj: Object) -> Object:
        """Return a new object if its name is not in use."""
        name = obj["metadata"]["name"]
        if self._store.find(target.resource, (target.namespace, name)) is not None:
            raise status.already_exists(target.resource.qualified, name)
        return {**obj, "kind": target.resource.kind, "apiVersion": target.resource.api_version}

    def _complete(self, target: Target, obj: Object) -> Object:
        """Fill in server fields, between mutating and validating webhooks."""
        metadata = dict(obj["metadata"])
        metadata["name"] = name = metadata.get("name") or self._generate_name(target, metadata)
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = format_time(self._now())
        if target.resource is PODS:
            return pods.as_new({**obj, "metadata": metadata}, now=self._now())
        if target.resource is NAMESPACES:
            labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
            metadata["labels"] = labels
            return {**obj, "metadata": metadata, "status": {"phase": "Active"}}
        return {**obj, "metadata": metadata}

    def _generate_name(self, target: Target, metadata: Object) -> str:
        prefix = metadata.get("generateName")
        if not prefix:
            why = "metadata.name: Required value: name or generateName is required"
            raise status.invalid(target.resource.kind, "", why)
        for _ in range(8):
            name = f"{prefix}{''.join(self._rng.choices(_NAME_LETTERS, k=5))}"
            if self._store.find(target.resource, (target.namespace, name)) is None:
                break
        return name
