"""Suspends and resumes workloads, each with a mark in the same write.

The mark and the field are one write: a process that dies at any time leaves either nothing or a
workload that says why it is suspended, and any later leader can resume it. Both writes name the
object's resource version, so that a change by its owner is never overwritten.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from kube.api.client import MERGE_PATCH, METADATA_LIST, KubeClient, KubeError, Object
from kube.marks import DECISION_ANNOTATION, JOB_UID_LABEL, RECLAIMED_MARK
from kube.read import suspension
from kube.read.suspension import SUSPENDABLE, ReclaimMark, SuspendableKind
from kube.read.workloads import Workload, controller_of
from kube.values.objects import items, mapping, marks_of
from policy.submission import PodUid, UserName
from service.memory import ExpiringMap

_TRIES: Final = 3
_DISCOVERY_SECONDS: Final = 300.0
_KINDS: Final = 64
_PAGE: Final = "500"
_JOB: Final = ("batch", "Job")
_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
_CHILDREN: Final = {
    _JOB_SET: (_JOB,),
    ("kubeflow.org", "MPIJob"): (_JOB,),
    ("ray.io", "RayJob"): (_JOB,),
    ("trainer.kubeflow.org", "TrainJob"): (_JOB_SET, _JOB),
}
"""The kinds of objects, the topmost first, by which a kind controls pods; others have them itself.

The RayCluster of a RayJob has a pod with devices, or no reason to end."""
_LIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"


class CannotSuspendError(Exception):
    """A workload must not or cannot be suspended; its pods can be ended one by one."""


class Resumption(StrEnum):
    """What became of an attempt to resume a workload."""

    DONE = "resumed"
    NOT_YET = "its controller has not suspended it yet"
    LEFT = "gone, finished, or its owner decides about it now"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsWith:
    """The pods that may end together with a workload."""

    includes: Callable[[PodUid, bool], bool]
    """Asked about a pod that exists, and whether Cellgate has decided about that one."""
    controllers: Collection[str]
    """The UIDs of the controllers of its pods that end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedWorkload:
    """A workload that Cellgate suspended at some time."""

    workload: Workload
    namespace: str
    created: float
    """When it was created, in seconds since 1970."""
    mark: ReclaimMark
    is_suspended: bool
    """Whether it is still to be resumed."""
    submitter: UserName
    """The submitter of its pods; empty if it does not tell."""


class WorkloadSuspender:
    """Suspends and resumes workloads through the API server."""

    def __init__(
        self,
        client: KubeClient,
        *,
        check_leading: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading
        self._paths: ExpiringMap[SuspendableKind, str] = ExpiringMap(
            _KINDS, seconds=_DISCOVERY_SECONDS, monotonic=monotonic
        )

    async def suspend(
        self,
        workload: Workload,
        *,
        namespace: str,
        mark: ReclaimMark,
        ends: EndsWith,
        is_wanted: Callable[[], bool],
    ) -> ReclaimMark:
        """Suspend a workload; return its mark, which keeps the age of earlier marks.

        `ends` tells which of its pods may end; if it has others, it is not suspended.

        A workload that the leader before this one suspended keeps that leader's mark. Raises
        CannotSuspendError if it must not be suspended, KubeError if the API server failed.
        """
        kind = SUSPENDABLE[workload.group, workload.kind]
        path = await self._path_of(workload, kind, namespace)
        for _ in range(_TRIES):
            obj = await self._read(path, workload)
            before = ReclaimMark.of(obj)
            if suspension.is_suspended(obj, kind):
                if before is None or suspension.state_of(obj) != suspension.SUSPENDED:
                    raise CannotSuspendError("its owner has suspended it")
                return before
            _check(obj, kind)
            await self._check_pods(workload, namespace, ends)
            if not is_wanted():
                raise CannotSuspendError("it need not end any more")
            now = mark.following(before)
            if await self._write(path, obj, kind=kind, mark=now, is_suspended=True):
                return now
        raise CannotSuspendError("it changes all the time")

    async def _check_pods(self, workload: Workload, namespace: str, ends: EndsWith) -> None:
        """Raise CannotSuspendError if the workload has pods that need not end.

        Cellgate follows only managed pods; a workload may also have others.
        """
        query = {"fieldSelector": _LIVE, "resourceVersion": "0"}  # from the API server's cache
        if (workload.group, workload.kind) == _JOB:
            query["labelSelector"] = f"{JOB_UID_LABEL}={workload.uid}"
        path = f"/api/v1/namespaces/{namespace}/pods"
        found = await self._client.request("GET", path, query=query, accept=METADATA_LIST)
        controllers = await self._controllers(workload, namespace, ends)
        for pod in items(found.get("items")):
            link, metadata = controller_of(pod), mapping(pod.get("metadata"))
            is_own = link is not None and link.workload.uid in controllers
            is_ending = metadata.get("deletionTimestamp") is not None
            is_decided = DECISION_ANNOTATION in marks_of(pod, "annotations")
            uid = PodUid(str(metadata.get("uid")))
            if is_own and not is_ending and not ends.includes(uid, is_decided):
                raise CannotSuspendError(f"its pod {metadata.get('name')} need not end")

    async def _controllers(
        self, workload: Workload, namespace: str, ends: EndsWith
    ) -> Collection[str]:
        """Return the UIDs of a workload and of all objects by which it controls pods.

        A child may have no pod that Cellgate follows, such as the Job of a driver without devices.
        """
        found = {workload.uid, *ends.controllers}
        for child in _CHILDREN.get((workload.group, workload.kind), ()):
            try:
                prefix, resource = await self._discover(SUSPENDABLE[child])
            except CannotSuspendError:
                continue  # the cluster has no such kind
            path = f"{prefix}/namespaces/{namespace}/{resource}"
            query = {"resourceVersion": "0"}  # from the API server's cache
            listed = await self._client.request("GET", path, query=query, accept=METADATA_LIST)
            for obj in items(listed.get("items")):
                link = controller_of(obj)
                if link is not None and link.workload.uid in found:
                    found.add(str(mapping(obj.get("metadata")).get("uid")))
        return found

    async def resume(self, workload: Workload, *, namespace: str) -> Resumption:
        """Resume a workload that carries the mark, once its controller has suspended it."""
        kind = SUSPENDABLE[workload.group, workload.kind]
        try:
            path = await self._path_of(workload, kind, namespace)
            obj = await self._read(path, workload)
        except CannotSuspendError:
            return Resumption.LEFT
        if suspension.state_of(obj) != suspension.SUSPENDED:
            return Resumption.LEFT
        has_ended = suspension.has_ended(obj) or obj["metadata"].get("deletionTimestamp")
        is_ours = suspension.is_suspended(obj, kind) and suspension.is_ours(obj, kind)
        if is_ours and not has_ended and suspension.obstacle(obj, kind) is None:
            if not suspension.has_suspended(obj):
                return Resumption.NOT_YET
            is_done = await self._write(path, obj, kind=kind, mark=None, is_suspended=False)
            return Resumption.DONE if is_done else Resumption.NOT_YET
        is_done = await self._write(path, obj, kind=kind, mark=None, is_suspended=None)
        return Resumption.LEFT if is_done else Resumption.NOT_YET

    async def marked(self, group: str, kind: str) -> list[MarkedWorkload]:
        """Return all workloads of a kind with a mark; none if they may not be read.

        Raises KubeError if the API server failed.
        """
        found = SUSPENDABLE[group, kind]
        try:
            prefix, resource = await self._discover(found)
            return await self._list(f"{prefix}/{resource}", found)
        except CannotSuspendError:
            return []  # the cluster has no such kind
        except KubeError as exc:
            if exc.status not in (403, 404):
                raise
            return []

    async def _list(self, path: str, kind: SuspendableKind) -> list[MarkedWorkload]:
        query, found = {"labelSelector": RECLAIMED_MARK, "limit": _PAGE}, list[MarkedWorkload]()
        while True:
            page = await self._client.request("GET", path, query=query)
            found += [one for obj in items(page.get("items")) if (one := _read(obj, kind))]
            token = page["metadata"].get("continue")
            if not token:
                return found
            query = query | {"continue": token}

    async def _path_of(self, workload: Workload, kind: SuspendableKind, namespace: str) -> str:
        prefix, resource = await self._discover(kind)
        return f"{prefix}/namespaces/{namespace}/{resource}/{workload.name}"

    async def _discover(self, kind: SuspendableKind) -> tuple[str, str]:
        """Return the path of a kind's version, and its name there, by discovery."""
        known = self._paths.get(kind)
        if known is None:
            known = await self._find(kind)
            if not known:
                raise CannotSuspendError(f"the cluster has no {kind.kind} of {kind.group}")
            self._paths[kind] = known
        prefix, _, resource = known.rpartition("/")
        return prefix, resource

    async def _find(self, kind: SuspendableKind) -> str:
        api = f"/apis/{kind.group}"
        for version in await self._get(api, "versions"):
            path = f"{api}/{version['version']}"
            for resource in await self._get(path, "resources"):
                if resource["kind"] == kind.kind and "/" not in resource["name"]:
                    return f"{path}/{resource['name']}"
        return ""

    async def _get(self, path: str, field: str) -> list[Object]:
        try:
            return (await self._client.request("GET", path)).get(field) or []
        except KubeError as exc:
            if exc.is_missing:
                return []
            raise

    async def _read(self, path: str, workload: Workload) -> Object:
        try:
            obj = await self._client.request("GET", path)
        except KubeError as exc:
            if exc.is_missing:
                raise CannotSuspendError("it is gone") from exc
            raise
        if obj["metadata"]["uid"] != workload.uid:
            raise CannotSuspendError("it is gone")
        return obj

    async def _write(
        self,
        path: str,
        obj: Object,
        *,
        kind: SuspendableKind,
        mark: ReclaimMark | None,
        is_suspended: bool | None,
    ) -> bool:
        """Write the field and the mark; False if the object has changed, or is gone."""
        self._check_leading()
        label = suspension.SUSPENDED if is_suspended else suspension.RESUMED
        metadata: Object = {
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "uid": obj["metadata"]["uid"],
            "labels": {RECLAIMED_MARK: label},
        }
        if mark is not None:
            metadata["annotations"] = {RECLAIMED_MARK: mark.to_text()}
        fields = kind.patch(is_suspended=is_suspended) if is_suspended is not None else {}
        try:
            await self._client.request(
                "PATCH",
                path,
                query={"fieldManager": suspension.FIELD_MANAGER},
                body={"metadata": metadata, **fields},
                content_type=MERGE_PATCH,
            )
        except KubeError as exc:
            if exc.is_conflict:
                return False
            raise
        return True


def _check(obj: Object, kind: SuspendableKind) -> None:
    why = suspension.obstacle(obj, kind)
    if why is None and obj["metadata"].get("deletionTimestamp"):
        why = "it is being deleted"
    if why is None and suspension.has_ended(obj):
        why = "it has finished"
    if why is not None:
        raise CannotSuspendError(why)


def _read(obj: Mapping[str, Any], kind: SuspendableKind) -> MarkedWorkload | None:
    metadata, mark = obj["metadata"], ReclaimMark.of(obj)
    if mark is None:
        return None
    return MarkedWorkload(
        workload=Workload(
            group=kind.group, kind=kind.kind, name=metadata["name"], uid=metadata["uid"]
        ),
        namespace=metadata["namespace"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]).timestamp(),
        mark=mark,
        is_suspended=suspension.state_of(obj) == suspension.SUSPENDED,
        submitter=suspension.submitter_of(obj),
    )
