"""The order in which a write is admitted.

Priority plugin → mutating webhooks → Priority plugin again if a webhook changed the object → server
fields are completed → validating webhooks.
"""

from dataclasses import replace

from simulation.admission import priority
from simulation.admission.review import AdmissionRequest
from simulation.admission.webhooks import Webhooks
from simulation.objects import pods
from simulation.objects.resources import MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from simulation.objects.store import Store


class AdmissionChain:
    """Admission plugins and webhooks, which may change or refuse a write."""

    def __init__(self, store: Store, webhooks: Webhooks) -> None:
        self._store = store
        self._webhooks = webhooks

    async def mutate(self, attributes: AdmissionRequest) -> AdmissionRequest:
        """Return the request with the object as plugins and mutating webhooks changed it."""
        attributes = first = self._run_plugins(attributes)
        for hook in self._webhooks.matching(MUTATING_WEBHOOKS, attributes):
            attributes = await self._webhooks.mutate(hook, attributes)
        return attributes if attributes.object == first.object else self._run_plugins(attributes)

    async def validate(self, attributes: AdmissionRequest) -> None:
        """Call the validating webhooks; raise the first refusal."""
        for hook in self._webhooks.matching(VALIDATING_WEBHOOKS, attributes):
            await self._webhooks.validate(hook, attributes)

    def _run_plugins(self, attributes: AdmissionRequest) -> AdmissionRequest:
        target, new, old = attributes.target, attributes.object, attributes.old_object
        if target.resource is not PODS or target.subresource or new is None:
            return attributes
        pod = pods.with_defaults(new)
        admitted = priority.admit_update(old, pod) if old else priority.admit_new(self._store, pod)
        return replace(attributes, object=admitted)
