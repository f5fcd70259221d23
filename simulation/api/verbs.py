"""What the verbs do, without HTTP: from a request that was understood to an object that is stored.

A write reads, lets admission change and refuse, and stores only if nobody was faster in between;
otherwise it is tried again with the newer object, which refuses a client that insists on a version.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.admission import checks
from simulation.admission.admission import AdmissionChain
from simulation.admission.review import Attributes
from simulation.objects import pods, status
from simulation.objects.fields import Key, Object, clone, format_time, version_of
from simulation.objects.identity import User
from simulation.objects.resources import NAMESPACES, PODS, Target
from simulation.objects.status import ApiError
from simulation.objects.store import Store

_TRIES = 5
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: what it is about and who sent it."""

    target: Target
    user: User
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return self.target.namespace, self.target.name

    def to_attributes(
        self, operation: str, *, new: Object | None = None, old: Object | None = None
    ) -> Attributes:
        """The same request as admission sees it."""
        return Attributes(
            operation=operation,
            target=self.target,
            user=self.user,
            warnings=self.warnings,
            object=new,
            old_object=old,
        )


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

    async def create(self, call: Call, body: Object) -> Object:
        """Admit and store a new object."""
        target = call.target
        if target.resource.namespaced:
            self._store.get(NAMESPACES, ("", target.namespace))
        new = checks.from_body(target, body)
        admitted = await self._admission.mutate(call.to_attributes("CREATE", new=new))
        obj = self._complete(target, admitted.object or new)
        checks.check_new(target, obj)
        await self._admission.validate(call.to_attributes("CREATE", new=obj))
        return self._store.create(target.resource, obj)

    async def update(self, call: Call, change: Callable[[Object], Object]) -> Object:
        """Admit and store a changed object; `change` makes it from the present one."""
        for attempt in range(1, _TRIES + 1):
            old = self._store.get(call.target.resource, call.key)
            new = await self._admit_update(call, old=old, new=change(old))
            try:
                return self._store.update(call.target.resource, new, expected=version_of(old))
            except ApiError as error:
                if error.code != 409 or attempt == _TRIES:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _admit_update(self, call: Call, *, old: Object, new: Object) -> Object:
        new = checks.prepared_update(call.target, old=old, new=new)
        admitted = await self._admission.mutate(call.to_attributes("UPDATE", new=new, old=old))
        new = admitted.object or new
        checks.check_update(call.target, old=old, new=new)
        await self._admission.validate(call.to_attributes("UPDATE", new=new, old=old))
        return new

    async def delete(self, call: Call, options: Object) -> Object:
        """Remove an object, or mark a running pod so that its kubelet does."""
        resource = call.target.resource
        if resource is NAMESPACES:
            raise status.not_simulated("deleting a namespace")
        obj = self._store.get(resource, call.key)
        attributes = call.to_attributes("DELETE", old=obj)
        await self._admission.validate(await self._admission.mutate(attributes))
        obj = self._store.get(resource, call.key)
        checks.check_preconditions(call.target, obj, wanted=options.get("preconditions") or {})
        grace = pods.grace_seconds(obj, options) if resource is PODS else 0
        if grace > 0:
            return self._mark_deleted(obj, grace)
        self._store.remove(resource, call.key)
        if resource.returns_deleted:
            return obj
        details = {"name": call.target.name, "group": resource.group, "kind": resource.plural}
        return status.success(200, {**details, "uid": obj["metadata"]["uid"]})

    def _mark_deleted(self, pod: Object, grace: int) -> Object:
        """A second deletion can only shorten the time that is left."""
        if grace >= pod["metadata"].get("deletionGracePeriodSeconds", grace + 1):
            return pod
        ends = format_time(self._now() + grace)
        marked = clone(pod)
        marked["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace}
        return self._store.update(PODS, marked, expected=version_of(pod))

    async def bind(self, call: Call, binding: Object) -> Object:
        """Give a pod its node; 409 if it has one already or is not what the binding says."""
        name = call.target.name
        if (binding.get("metadata") or {}).get("name") != name:
            raise status.bad_request("name in URL does not match name in Binding object")
        if not (binding.get("target") or {}).get("name"):
            raise status.invalid("Binding", name, "target.name: Required value")
        attributes = await self._admission.mutate(call.to_attributes("CREATE", new=binding))
        await self._admission.validate(attributes)
        binding = attributes.object or binding
        pod = self._store.get(PODS, call.key)
        checks.check_preconditions(call.target, pod, wanted=binding["metadata"])
        bound = pods.bind(pod, binding, now=self._now())
        self._store.update(PODS, bound, expected=version_of(pod))
        return status.success(201)

    def _complete(self, target: Target, obj: Object) -> Object:
        """Fill in what only the server knows: between mutating and validating webhooks."""
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
