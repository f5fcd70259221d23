"""The order in which a write is admitted.

Priority plugin → mutating webhooks → (did one change the object: Priority plugin again) → … the
object is completed … → validating webhooks.
"""

from dataclasses import replace

from simulation.admission import priority
from simulation.admission.review import Attributes
from simulation.admission.webhooks import Webhooks
from simulation.objects import pods
from simulation.objects.resources import MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from simulation.objects.store import Store


class AdmissionChain:
    """Everything that may change or refuse a write before it is stored."""

    def __init__(self, store: Store, webhooks: Webhooks) -> None:
        self._store = store
        self._webhooks = webhooks

    async def mutate(self, attributes: Attributes) -> Attributes:
        """The request with its object as plugins and mutating webhooks want it."""
        attributes = first = self._run_plugins(attributes)
        for hook in self._webhooks.matching(MUTATING_WEBHOOKS, attributes):
            attributes = await self._webhooks.mutate(hook, attributes)
        return attributes if attributes.object == first.object else self._run_plugins(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Ask the validating webhooks; the first refusal is raised."""
        for hook in self._webhooks.matching(VALIDATING_WEBHOOKS, attributes):
            await self._webhooks.validate(hook, attributes)

    def _run_plugins(self, attributes: Attributes) -> Attributes:
        target, new, old = attributes.target, attributes.object, attributes.old_object
        if target.resource is not PODS or target.subresource or new is None:
            return attributes
        pod = pods.with_defaults(new)
        admitted = priority.admit_update(old, pod) if old else priority.admit_new(self._store, pod)
        return replace(attributes, object=admitted)
