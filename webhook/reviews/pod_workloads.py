"""The workload of a new pod: its topmost controller, unless the pod joins a gang without one.

Pods that an earlier version of Cellgate admitted do not name their workload, and their gang has no
owner. A new pod of the same controller, for example a retry, joins that gang as long as it has
live pods; otherwise a gang that runs during an upgrade would be divided.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.api.client import METADATA_LIST, KubeClient, KubeError
from kube.follow.owners import OwnerChains, note_error
from kube.read.late_members import format_late, late_of
from kube.read.workloads import Workload, WorkloadKey, controller_of
from kube.values.objects import items, mapping, marks_of
from policy.errors import ConflictError
from service.clock import Clock
from service.memory import BoundedMap, ExpiringMap
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget

_LIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"
_KEPT: Final = 10_000
_UPGRADE_SECONDS: Final = 1800.0
"""How long webhooks of an earlier version may run beside this one."""
_OLD_SECONDS: Final = 2.0
_FINAL: Final = (401, 403, 404)
"""Statuses that the same request would get again."""
_Gang = tuple[str, str, str]
"""Namespace, label and owner."""
_KEYED: Final = frozenset((marks.GANG_LABEL, marks.GANG_SIZE_LABEL))
"""Labels of pods whose gang depends on their workload."""


class PodWorkloads:
    """Finds the workloads of pods that are being created. Used from one event loop."""

    def __init__(self, client: KubeClient, *, clock: Clock) -> None:
        self._client = client
        self._owners = OwnerChains(client, monotonic=clock.monotonic)
        self._all_mark_from = clock.now().timestamp() + _UPGRADE_SECONDS
        """Workloads that are created later have no pods without the mark."""
        self._new: BoundedMap[_Gang, None] = BoundedMap(_KEPT)
        """Gangs that have no members without an owner."""
        self._old: ExpiringMap[_Gang, None] = ExpiringMap(
            _KEPT, seconds=_OLD_SECONDS, monotonic=clock.monotonic
        )
        """Gangs that had such members a moment ago."""
        self._reading: dict[_Gang, asyncio.Task[None]] = {}

    async def with_workload(self, obj: Mapping[str, Any], *, namespace: str) -> Mapping[str, Any]:
        """Return a pod with the mark of its workload, whatever its author wrote there.

        Raises ConflictError if the workload of a member of a gang cannot be read now.
        """
        workload = await self._find(obj, namespace)
        others = {
            key: text
            for key, text in marks_of(obj, "annotations").items()
            if key not in (marks.WORKLOAD_ANNOTATION, marks.GANG_BY_ANNOTATION)
        }
        own = {marks.WORKLOAD_ANNOTATION: workload.mark} if workload else {}
        known = self._owners.late(WorkloadKey(namespace, workload.mark)) if workload else ()
        late = late_of(known, marks_of(obj, "labels"))
        if late:
            own[marks.LATE_ANNOTATION] = format_late(late)
        metadata = {**mapping(obj.get("metadata")), "annotations": {**others, **own}}
        return {**obj, "metadata": metadata}

    async def _find(self, obj: Mapping[str, Any], namespace: str) -> Workload | None:
        try:
            async with within_budget(KUBE_SECONDS):
                workload = await self._owners.resolve(obj, namespace=namespace)
        except (TimeoutError, KubeError) as exc:
            workload = self._owners.known(obj, namespace=namespace)
            if not _KEYED.isdisjoint(marks_of(obj, "labels")):
                # With another workload than its siblings it would be a gang of its own.
                message = f"the controller of {workload} cannot be read now"
                raise ConflictError(message) from exc
        gang = marks_of(obj, "labels").get(marks.GANG_LABEL)
        if workload is None or not isinstance(gang, str) or not gang:
            return workload
        created = self._owners.created(WorkloadKey(namespace, workload.mark))
        is_recent = created > self._all_mark_from
        if not is_recent and await self._joins_older(obj, workload, namespace=namespace, gang=gang):
            return None
        return workload

    async def _joins_older(
        self, obj: Mapping[str, Any], workload: Workload, *, namespace: str, gang: str
    ) -> bool:
        """Tell whether live pods of the same workload have the label, and no mark.

        Raises ConflictError if that cannot be found out now: a wrong answer would divide the gang.
        """
        key = (namespace, gang, workload.uid)
        if key in self._new:
            return False
        if key not in self._old:
            if key not in self._reading:
                task = asyncio.create_task(self._read(key, obj, workload))
                self._reading[key] = task
                task.add_done_callback(note_error)
            try:
                async with within_budget(KUBE_SECONDS):
                    # Shielded: all members share the request, also one that comes in too late.
                    await asyncio.shield(self._reading[key])
            except (KubeError, TimeoutError) as exc:
                raise ConflictError(f"the pods of gang {gang} cannot be read now") from exc
        return key in self._old

    async def _read(self, key: _Gang, obj: Mapping[str, Any], workload: Workload) -> None:
        """Find out whether a gang has live members without the mark."""
        namespace, gang, _ = key
        query = {
            "labelSelector": f"{marks.GANG_LABEL}={gang}",
            "fieldSelector": _LIVE,
            "resourceVersion": "0",  # from the API server's cache
        }
        path = f"/api/v1/namespaces/{namespace}/pods"
        try:
            found = await self._client.request("GET", path, query=query, accept=METADATA_LIST)
        except KubeError as exc:
            if exc.status not in _FINAL:
                raise
            found = {}
        finally:
            del self._reading[key]
        own = controller_of(obj)
        has_older = any(
            controller_of(one) == own or self._owners.known(one, namespace=namespace) == workload
            for one in items(found.get("items"))
            if _is_without_mark(marks_of(one, "annotations"))
        )
        if has_older:
            self._old[key] = None
        else:
            self._new[key] = None


def _is_without_mark(annotations: Mapping[str, Any]) -> bool:
    """Tell whether Cellgate admitted a pod and did not name its workload."""
    is_decided = marks.DECISION_ANNOTATION in annotations
    return is_decided and marks.WORKLOAD_ANNOTATION not in annotations
