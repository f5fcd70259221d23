"""Executes what the planner asks for: pods are released, nominated and ended."""

import asyncio
from collections.abc import Callable
from typing import Final, assert_never

from extender.feeds.pod_feed import PodSink
from extender.leader_role import LeaderRole
from extender.outcomes.evictions import Evictions
from extender.planning.pending_writes import PendingWrites
from extender.queue.model import Action, EvictPod, NominatePod, ReleaseHelper, ReleasePod
from kube.api.binder import PodRef
from kube.api.client import KubeClient
from kube.api.pod_writer import PodWriter
from kube.marks import ALTERNATIVE_ANNOTATION
from kube.placement_annotations import placement_annotations
from policy.errors import BackendError
from policy.queues.alternatives import read_used

_AT_ONCE: Final = 48
"""Writes under way at the same time: enough to keep an API server busy, and room for bindings."""


class ActionExecutor:
    """Executes many actions at once, each of them at most once."""

    def __init__(
        self,
        client: KubeClient,
        *,
        leading: LeaderRole,
        pods: PodSink,
        pending: PendingWrites,
        evictions: Evictions,
    ) -> None:
        self._leading = leading
        self._pods = pods
        self._pending = pending
        self._writer = PodWriter(client, check_leading=leading.check)
        self._evictions = evictions
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def execute(self, action: Action, *, is_wanted: Callable[[], bool]) -> None:
        """Execute an action; BackendError if that failed, is not wanted any more or is unknown."""
        match action:
            case EvictPod(uid=uid, reason=reason):
                pod = self._pods.get(uid)
                if pod is None:
                    raise BackendError("the pod is gone")
                await self._evictions.end(pod, why=reason.text, is_wanted=is_wanted)
            case ReleasePod() | ReleaseHelper() | NominatePod():
                async with self._slots:
                    await self._write(action, is_wanted)
            case _:
                assert_never(action)

    async def _write(
        self, action: ReleasePod | ReleaseHelper | NominatePod, is_wanted: Callable[[], bool]
    ) -> None:
        await self._pending.wait(action.uid)  # a change in between would void the release
        pod = self._pods.get(action.uid)
        if pod is None or not is_wanted():
            raise BackendError("the pod is gone, or the action is not wanted any more")
        self._leading.check()
        reference = PodRef.of(pod)
        with self._pending.writing(pod.uid):
            if isinstance(action, ReleasePod):
                self._pods.use_alternative(pod.gang.key, read_used(action.alternative))
                version = await self._writer.release(
                    reference,
                    node=action.placement.node,
                    annotations=placement_annotations(action.placement) | _form(action),
                )
            elif isinstance(action, ReleaseHelper):
                version = await self._writer.release_helper(reference, mark=pod.resource_version)
            else:
                version = await self._writer.nominate(reference, node=action.node)
            if version is not None:
                self._pods.note_version(pod.uid, version)


def _form(release: ReleasePod) -> dict[str, str]:
    """Say by which alternative a gang is placed; a pod that stated one keeps it."""
    return {ALTERNATIVE_ANNOTATION: release.alternative} if release.alternative else {}
