"""What the planner asks for, done through the API server."""

from collections.abc import Callable
from typing import assert_never

from extender.outcomes.eviction import Ending
from extender.planning.pending_writes import Writing
from extender.queue.model import Action, EvictPod, NominatePod, ReleasePod
from extender.term import Leading
from kube.api.binder import PodRef
from kube.api.client import KubeClient
from kube.api.pod_writer import PodWriter
from kube.placement_annotations import placement_annotations
from kube.read.pods import ManagedPod
from policy.errors import BackendError


class Hands:
    """Releases, nominates and ends pods."""

    def __init__(
        self,
        client: KubeClient,
        *,
        leading: Leading,
        writing: Writing,
        ending: Ending,
    ) -> None:
        self._leading = leading
        self.writing = writing
        self._writer = PodWriter(client, check_leading=leading.check)
        self._ending = ending

    async def do(
        self, action: Action, pod: ManagedPod, *, is_wanted: Callable[[], bool]
    ) -> str | None:
        """Do it, and tell the pod's resource version if it is known then.

        BackendError if it was not done, is not wanted any more, or nobody knows.
        """
        if not is_wanted():
            raise BackendError("not wanted any more")
        self._leading.check()
        reference = PodRef(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, resource_version=None
        )
        match action:
            case ReleasePod(placement=placement):
                annotations = placement_annotations(placement)
                return await self._writer.release(
                    reference, node=placement.node, annotations=annotations
                )
            case NominatePod(node=node):
                return await self._writer.nominate(reference, node=node)
            case EvictPod(reason=reason):
                await self._ending.end(pod, why=reason.text, is_wanted=is_wanted)
                return None
            case _:
                assert_never(action)
