"""An operator that creates pods and Jobs for the objects of `custom_kinds`, as theirs do.

It runs under a service account of its own, lists what there is, and creates what is missing under
fixed names, so that it may be repeated at any moment. Suspension is theirs, too: `spec.suspend`, or
`spec.runPolicy.suspend` of Kubeflow's kinds.
"""

import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import aiohttp

from tests.controlplane.api import Api, ApiError, JsonObject
from tests.support.kube.custom_kinds import (
    JOB_SET,
    LEADER_WORKER_SET,
    MPI_JOB,
    PYTORCH_JOB,
    CustomKind,
)
from tests.zoo.lives import GANG_LABEL
from tests.zoo.snapshots import Snapshot, Snapshots, is_live, is_ready

logger = logging.getLogger(__name__)

_OWNER_LABEL: Final = "zoo.test/owner"
_LWS: Final = "leaderworkerset.sigs.k8s.io"

Work = Callable[[JsonObject], Coroutine[Any, Any, None]]


def owner_of(obj: JsonObject, api_version: str, kind: str) -> JsonObject:
    """The reference of a controller to what it owns."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


class StandIn:
    """The operator of all custom kinds."""

    def __init__(self, api: Api, snapshots: Snapshots, *, namespaces: Iterable[str]) -> None:
        self._api = api
        self._snapshots = snapshots
        self._namespaces = tuple(namespaces)
        self._kinds: tuple[tuple[CustomKind, Work], ...] = (
            (PYTORCH_JOB, self._pytorch_job),
            (MPI_JOB, self._mpi_job),
            (JOB_SET, self._job_set),
            (LEADER_WORKER_SET, self._leader_worker_set),
        )

    async def run(self) -> None:
        """Work after every reading of the world."""
        while True:
            await self._snapshots.next()
            for kind, work in self._kinds:
                for namespace in self._namespaces:
                    with contextlib.suppress(ApiError, aiohttp.ClientError, TimeoutError):
                        for obj in await self._api.list(kind.path(namespace)):
                            await self._reconcile(kind, obj, work)

    async def _reconcile(self, kind: CustomKind, obj: JsonObject, work: Work) -> None:
        obj |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if "deletionTimestamp" in obj["metadata"] or _has(obj, "Succeeded") or _has(obj, "Failed"):
            return
        try:
            if _is_suspended(obj):
                await self._suspend(kind, obj)
                return
            if _has(obj, "Suspended"):
                await self._tell(kind, obj, "Suspended", "False")
            await work(obj)
        except ApiError as error:  # refused now, tried again at the next reading
            logger.info("%s %s: %s", kind.kind, obj["metadata"]["name"], error)

    async def _suspend(self, kind: CustomKind, obj: JsonObject) -> None:
        """Delete everything, and then say so."""
        pods, jobs = self._owned(obj, "Pod"), self._owned(obj, "Job")
        for pod in pods:
            if pod["status"].get("phase") != "Succeeded":
                await self._delete(f"/api/v1/namespaces/{_namespace(obj)}/pods", pod)
        for job in jobs:
            await self._delete(f"/apis/batch/v1/namespaces/{_namespace(obj)}/jobs", job)
        if not any(map(is_live, pods)) and not jobs and not _has(obj, "Suspended"):
            await self._tell(kind, obj, "Suspended", "True")

    async def _pytorch_job(self, obj: JsonObject) -> None:
        names = {
            f"{obj['metadata']['name']}-{role.lower()}-{index}": spec["template"]
            for role, spec in obj["spec"]["pytorchReplicaSpecs"].items()
            for index in range(spec["replicas"])
        }
        pods = await self._keep_pods(obj, names)
        if sum(pod["status"].get("phase") == "Succeeded" for pod in pods) == len(names):
            await self._tell(PYTORCH_JOB, obj, "Succeeded", "True")

    async def _mpi_job(self, obj: JsonObject) -> None:
        name, specs = obj["metadata"]["name"], obj["spec"]["mpiReplicaSpecs"]
        worker = specs["Worker"]
        names = {
            f"{name}-worker-{index}": worker["template"] for index in range(worker["replicas"])
        }
        launcher = self._snapshots.latest.get("Job", _namespace(obj), f"{name}-launcher")
        if launcher is not None and launcher["status"].get("succeeded"):
            for pod in self._owned(obj, "Pod"):
                await self._delete(f"/api/v1/namespaces/{_namespace(obj)}/pods", pod)
            await self._tell(MPI_JOB, obj, "Succeeded", "True")
            return
        pods = await self._keep_pods(obj, names)
        waits = obj["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
        if launcher is None and (not waits or sum(map(is_ready, pods)) == len(names)):
            template = specs["Launcher"]["template"]
            await self._create_job(obj, f"{name}-launcher", {"template": template})

    async def _job_set(self, obj: JsonObject) -> None:
        namespace, name, snapshot = _namespace(obj), obj["metadata"]["name"], self._snapshots.latest
        jobs: dict[str, JsonObject | None] = {}
        for replicated in obj["spec"]["replicatedJobs"]:
            child = f"{name}-{replicated['name']}-0"
            jobs[child] = snapshot.get("Job", namespace, child)
            if jobs[child] is None and _may_start(replicated, snapshot, obj):
                await self._create_job(obj, child, replicated["template"]["spec"])
        ends = [_job_end(job) for job in jobs.values()]
        if "Failed" in ends:
            await self._tell(JOB_SET, obj, "Failed", "True")
        elif all(end == "Complete" for end in ends):
            await self._tell(JOB_SET, obj, "Succeeded", "True")

    async def _leader_worker_set(self, obj: JsonObject) -> None:
        name, namespace = obj["metadata"]["name"], _namespace(obj)
        wanted = obj["spec"]["leaderWorkerTemplate"]
        for group in range(obj["spec"]["replicas"]):
            leader = f"{name}-{group}"
            marks = {
                f"{_LWS}/name": name,
                f"{_LWS}/group-index": str(group),
                f"{_LWS}/group-key": f"{obj['metadata']['uid'][:8]}-{group}",
                GANG_LABEL: leader,
            }
            template = _marked(wanted["leaderTemplate"], {**marks, f"{_LWS}/worker-index": "0"})
            await self._keep_pods(obj, {leader: template})
            pod = self._snapshots.latest.get("Pod", namespace, leader)
            if pod is None or not is_live(pod):
                continue
            # The real one numbers the workers from 1, which changes nothing here.
            workers = _marked(wanted["workerTemplate"], {**marks, "app": leader})
            body = {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {
                    "name": leader,
                    "ownerReferences": [owner_of(pod, "v1", "Pod")],
                },
                "spec": {
                    "replicas": wanted["size"] - 1,
                    "serviceName": leader,
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": {"app": leader}},
                    "template": workers,
                },
            }
            await self._create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)

    async def _keep_pods(
        self, obj: JsonObject, templates: dict[str, JsonObject]
    ) -> list[JsonObject]:
        """Create pods that are missing, and those that failed again; the pods that exist."""
        path = f"/api/v1/namespaces/{_namespace(obj)}/pods"
        found = []
        for name, template in templates.items():
            pod = self._snapshots.latest.get("Pod", _namespace(obj), name)
            if pod is None:
                marked = _marked(template, {_OWNER_LABEL: obj["metadata"]["name"]})
                metadata = {**marked["metadata"], "name": name}
                metadata["ownerReferences"] = [owner_of(obj, obj["apiVersion"], obj["kind"])]
                body = {"apiVersion": "v1", "kind": "Pod", **marked, "metadata": metadata}
                await self._create(path, body)
            elif pod["status"].get("phase") == "Failed":
                await self._delete(path, pod)
            else:
                found.append(pod)
        return found

    async def _create_job(self, obj: JsonObject, name: str, spec: JsonObject) -> None:
        metadata = {
            "name": name,
            "labels": {_OWNER_LABEL: obj["metadata"]["name"]},
            "ownerReferences": [owner_of(obj, obj["apiVersion"], obj["kind"])],
        }
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        await self._create(f"/apis/batch/v1/namespaces/{_namespace(obj)}/jobs", body)

    def _owned(self, obj: JsonObject, kind: str) -> list[JsonObject]:
        uid = obj["metadata"]["uid"]
        return [
            one
            for one in self._snapshots.latest.objects[kind].values()
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences") or [])
        ]

    async def _create(self, path: str, body: JsonObject) -> None:
        try:
            await self._api.create(path, body)
        except ApiError as error:
            if error.status != 409:
                raise

    async def _delete(self, path: str, obj: JsonObject) -> None:
        with contextlib.suppress(ApiError):
            await self._api.request(
                "DELETE",
                f"{path}/{obj['metadata']['name']}",
                {
                    "preconditions": {"uid": obj["metadata"]["uid"]},
                    "propagationPolicy": "Background",
                },
            )

    async def _tell(self, kind: CustomKind, obj: JsonObject, condition: str, status: str) -> None:
        others = [
            one for one in obj.get("status", {}).get("conditions") or [] if one["type"] != condition
        ]
        told = {"conditions": [*others, {"type": condition, "status": status}]}
        path = f"{kind.path(_namespace(obj))}/{obj['metadata']['name']}/status"
        await self._api.patch(path, {"status": told})


def _namespace(obj: JsonObject) -> str:
    namespace: str = obj["metadata"]["namespace"]
    return namespace


def _has(obj: JsonObject, condition: str) -> bool:
    return any(
        one["type"] == condition and one["status"] == "True"
        for one in obj.get("status", {}).get("conditions") or []
    )


def _is_suspended(obj: JsonObject) -> bool:
    spec = obj["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _may_start(replicated: JsonObject, snapshot: Snapshot, obj: JsonObject) -> bool:
    """Whether all pods of the Jobs that it depends on are ready."""
    for other in replicated.get("dependsOn") or []:
        job = snapshot.get("Job", _namespace(obj), f"{obj['metadata']['name']}-{other['name']}-0")
        if job is None:
            return False
        told = job.get("status", {})
        if told.get("ready", 0) + told.get("succeeded", 0) < job["spec"]["parallelism"]:
            return False
    return True


def _job_end(job: JsonObject | None) -> str | None:
    for condition in (job or {}).get("status", {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["type"])
    return None


def _marked(template: JsonObject, labels: dict[str, str]) -> JsonObject:
    metadata = template["metadata"]
    return {
        **template,
        "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}},
    }
