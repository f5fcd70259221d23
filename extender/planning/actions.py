"""What the planner asks for, done through the API server."""

from collections.abc import Callable
from typing import assert_never

from extender.leader_role import LeaderRole
from extender.outcomes.eviction import Ending
from extender.planning.pending_writes import Writing
from extender.queue.model import Action, End, Nominate, Release
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
        leading: LeaderRole,
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
            case Release(placement=placement):
                annotations = placement_annotations(placement)
                return await self._writer.release(
                    reference, node=placement.node, annotations=annotations
                )
            case Nominate(node=node):
                return await self._writer.nominate(reference, node=node)
            case End(reason=reason):
                await self._ending.end(pod, why=reason.text, is_wanted=is_wanted)
                return None
            case _:
                assert_never(action)
