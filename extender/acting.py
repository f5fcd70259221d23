"""What the planner asks for, done through the API server."""

from typing import assert_never

from extender import wire
from extender.events import Announcer
from extender.leading import Leading
from extender.metrics import ExtenderMetrics
from extender.queue.model import Action, End, Nominate, Release
from extender.writing import Writing
from kube.binding import PodRef
from kube.client import KubeClient
from kube.ending import PodEnder
from kube.pod_writes import PodWriter
from kube.pods import ManagedPod


class Hands:
    """Releases, nominates and ends pods."""

    def __init__(
        self,
        client: KubeClient,
        *,
        leading: Leading,
        writing: Writing,
        announcer: Announcer,
        metrics: ExtenderMetrics,
    ) -> None:
        self._leading = leading
        self.writing = writing
        self._writer = PodWriter(client, check_leading=leading.check)
        self._ender = PodEnder(client, check_leading=leading.check)
        self._announcer = announcer
        self._metrics = metrics

    async def do(self, action: Action, pod: ManagedPod) -> str | None:
        """Do it, and tell the pod's resource version if it is known then.

        BackendError if it was not done, or nobody knows.
        """
        self._leading.check()
        reference = PodRef(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, resource_version=None
        )
        match action:
            case Release(placement=placement):
                annotations = wire.to_annotations(placement)
                return await self._writer.release(
                    reference, node=placement.node, annotations=annotations
                )
            case Nominate(node=node):
                return await self._writer.nominate(reference, node=node)
            case End(reason=reason):
                if await self._ender.end(reference, why=reason):
                    self._announcer.preempted(pod, why=reason)
                    self._metrics.victims.inc()
                return None
            case _:
                assert_never(action)
