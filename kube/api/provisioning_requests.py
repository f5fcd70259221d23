"""ProvisioningRequests of the Cluster Autoscaler: nodes for all pods of a gang, or none.

A request names a class and, for each kind of member, a PodTemplate and a number. Both are owned by
a pod of the gang, so that they go with it; a request that is taken back takes its templates with
it. Their names follow from the gang: a leader that repeats
a request changes nothing.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from kube.api.binder import PodRef
from kube.api.client import KubeClient, KubeError, Object
from kube.values.objects import items, mapping
from policy.submission import GangKey

API_VERSION: Final = "autoscaling.x-k8s.io/v1"
_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "cellgate"}
_SELECTOR: Final = "app.kubernetes.io/managed-by=cellgate"
_GANG_ANNOTATION: Final = "cellgate.io/gang"
_OVER: Final = frozenset({"Failed", "BookingExpired", "CapacityRevoked"})
_FORBIDDEN: Final = 403
_POD_FIELDS: Final = (
    "affinity",
    "nodeSelector",
    "overhead",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_FIELDS: Final = ("image", "name", "ports", "resources", "restartPolicy")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Members of a gang that ask for the same, and one of them."""

    count: int
    sample: PodRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRequest:
    """A ProvisioningRequest of ours that exists."""

    namespace: str
    name: str
    created: datetime
    is_over: bool
    """Whether the autoscaler gave up, or no longer keeps the nodes for it."""
    templates: tuple[str, ...] = ()
    """Its PodTemplates."""


def request_name(gang: GangKey) -> str:
    """Return the name of a gang's request, the same in every process."""
    told = "/".join((gang.namespace, gang.name, gang.owner))
    return f"cellgate-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


class ProvisioningRequests:
    """Reads and writes the requests; KubeError if that failed."""

    def __init__(
        self, client: KubeClient, *, class_name: str, check_leading: Callable[[], None]
    ) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._class_name = class_name
        self._check_leading = check_leading

    async def list(self) -> list[FoundRequest]:
        """Return all requests of ours, of this leader and of earlier ones."""
        found = await self._client.request(
            "GET", f"/apis/{API_VERSION}/provisioningrequests", query={"labelSelector": _SELECTOR}
        )
        return [_read(item) for item in found.get("items") or ()]

    async def create(self, gang: GangKey, pod_sets: Sequence[PodSet]) -> str:
        """Ask for nodes for all pods of a gang; return the name of the request."""
        name = request_name(gang)
        told = []
        for index, pod_set in enumerate(pod_sets):
            template = f"{name}-{index}"
            pod = await self._client.request("GET", pod_set.sample.path)
            metadata = _metadata(gang, template, owner=pod_set.sample)
            body: Object = {"metadata": metadata, "template": build_template(pod)}
            await self._post(f"{_core(gang.namespace)}/podtemplates", body)
            told.append({"count": pod_set.count, "podTemplateRef": {"name": template}})
        body = {
            "apiVersion": API_VERSION,
            "kind": "ProvisioningRequest",
            "metadata": _metadata(gang, name, owner=pod_sets[0].sample),
            "spec": {"provisioningClassName": self._class_name, "podSets": told},
        }
        await self._post(_collection(gang.namespace), body)
        return name

    async def delete(self, request: FoundRequest) -> None:
        """Take a request back, and then its PodTemplates.

        Templates that are left, because the process ended between or lacks the right to delete
        them, go with the gang's pod.
        """
        await self._delete(f"{_collection(request.namespace)}/{quote(request.name, safe='')}")
        templates = f"{_core(request.namespace)}/podtemplates"
        for name in request.templates:
            await self._delete(f"{templates}/{quote(name, safe='')}", ignores=(_FORBIDDEN,))

    async def _delete(self, path: str, *, ignores: Collection[int] = ()) -> None:
        self._check_leading()
        try:
            await self._client.request("DELETE", path)
        except KubeError as exc:
            if not exc.is_missing and exc.status not in ignores:
                raise

    async def _post(self, path: str, body: Object) -> None:
        self._check_leading()
        try:
            await self._client.request("POST", path, body=body)
        except KubeError as exc:
            if not exc.is_conflict:
                raise


def build_template(pod: Mapping[str, Any]) -> Object:
    """Return the template of a pod: what decides which nodes it fits on, and nothing else."""
    spec = mapping(pod.get("spec"))
    chosen: Object = {key: spec[key] for key in _POD_FIELDS if key in spec}
    for key in ("containers", "initContainers"):
        if key in spec:
            chosen[key] = [
                {field: container[field] for field in _CONTAINER_FIELDS if field in container}
                for container in spec[key]
            ]
    labels = mapping(mapping(pod.get("metadata")).get("labels"))
    return {"metadata": {"labels": dict(labels)}, "spec": chosen}


def _metadata(gang: GangKey, name: str, *, owner: PodRef) -> Object:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
    return {
        "name": name,
        "namespace": gang.namespace,
        "labels": _MANAGED_BY,
        "annotations": {_GANG_ANNOTATION: gang.name},
        "ownerReferences": [reference],
    }


def _read(item: Mapping[str, Any]) -> FoundRequest:
    metadata, status = mapping(item.get("metadata")), mapping(item.get("status"))
    return FoundRequest(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        created=datetime.fromisoformat(str(metadata["creationTimestamp"])),
        is_over=any(
            one.get("type") in _OVER and one.get("status") == "True"
            for one in status.get("conditions") or ()
        ),
        templates=_templates(item),
    )


def _templates(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the PodTemplates that Cellgate made for a request: no others are deleted."""
    own = f"{mapping(item.get('metadata')).get('name')}-"
    sets = items(mapping(item.get("spec")).get("podSets"))
    names = (str(mapping(one.get("podTemplateRef")).get("name")) for one in sets)
    return tuple(name for name in names if name.startswith(own))


def _core(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}"


def _collection(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{quote(namespace, safe='')}/provisioningrequests"
