"""Volumes: the nodes on which the PersistentVolumes of claims can be used.

A claim that is not bound yet restricts nothing: kube-scheduler chooses or creates its volume on the
node of the pod. Without the right to read volumes nothing is known of them; kube-scheduler, which
knows them, then refuses nodes that do not suit.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kube.api.client import KubeClient, Object
from kube.api.feed import Feed, FeedSource
from kube.read.node_choice import NodeTerms, read_terms
from kube.values.objects import mapping
from service.clock import Clock

ClaimKey = tuple[str, str]
"""Namespace and name."""


class Volumes:
    """The volume of each claim, and the node affinity of each volume."""

    def __init__(self) -> None:
        self._volume_of: dict[ClaimKey, str] = {}
        self._claim_of: dict[str, ClaimKey] = {}
        self._terms: dict[str, NodeTerms] = {}
        self.on_change: list[Callable[[ClaimKey], None]] = []
        """Callbacks that run when other nodes than before suit a claim."""

    def terms(self, claims: Iterable[ClaimKey]) -> tuple[NodeTerms, ...]:
        """Return the node affinity of the volumes of some claims; one term of each must be met."""
        volumes = map(self._volume_of.get, claims)
        found = (self._terms.get(volume) for volume in volumes if volume is not None)
        return tuple(terms for terms in found if terms is not None)

    def put_claim(self, key: ClaimKey, volume: str | None) -> None:
        """A claim has a volume, another one, or none."""
        before = self._volume_of.get(key)
        if before == volume:
            return
        if before is not None:
            del self._volume_of[key]
            self._claim_of.pop(before, None)
        if volume is not None:
            self._volume_of[key] = volume
            self._claim_of[volume] = key
        self._tell(key)

    def put_volume(self, name: str, terms: NodeTerms | None) -> None:
        """A volume appeared, changed or went."""
        if self._terms.get(name) == terms:
            return
        if terms is None:
            del self._terms[name]
        else:
            self._terms[name] = terms
        claim = self._claim_of.get(name)
        if claim is not None:
            self._tell(claim)

    def claims(self) -> list[ClaimKey]:
        """Return the claims that have volumes."""
        return list(self._volume_of)

    def volumes(self) -> list[str]:
        """Return the volumes that suit some nodes only."""
        return list(self._terms)

    def _tell(self, key: ClaimKey) -> None:
        for tell in self.on_change:
            tell(key)


class ClaimSink:
    """Takes PersistentVolumeClaims."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all claims there are; any other is gone."""
        there = {_key(obj) for obj in objects}
        for key in self._volumes.claims():
            if key not in there:
                self._volumes.put_claim(key, None)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A claim appeared or changed."""
        volume = obj["spec"].get("volumeName")
        self._volumes.put_claim(_key(obj), str(volume) if volume else None)

    def remove(self, obj: Object) -> None:
        """A claim is gone."""
        self._volumes.put_claim(_key(obj), None)


class VolumeSink:
    """Takes PersistentVolumes."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all volumes there are; any other is gone."""
        there = {obj["metadata"]["name"] for obj in objects}
        for name in self._volumes.volumes():
            if name not in there:
                self._volumes.put_volume(name, None)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """A volume appeared or changed."""
        self._volumes.put_volume(obj["metadata"]["name"], _read_terms(obj))

    def remove(self, obj: Object) -> None:
        """A volume is gone."""
        self._volumes.put_volume(obj["metadata"]["name"], None)


async def follow_volumes(volumes: Volumes, client: KubeClient, clock: Clock) -> None:
    """Follow claims and volumes, as far as we may read them, until cancelled."""
    sources = (
        FeedSource(
            path="/api/v1/persistentvolumeclaims",
            sink=ClaimSink(volumes),
            trim=_trim_claim,
            is_optional=True,
        ),
        FeedSource(
            path="/api/v1/persistentvolumes",
            sink=VolumeSink(volumes),
            trim=_trim_volume,
            is_optional=True,
        ),
    )
    async with asyncio.TaskGroup() as group:
        for source in sources:
            group.create_task(Feed(client, source, clock=clock).run())
    # Where the cluster has no such kind there is nothing to follow, and the task must not end.
    await asyncio.Event().wait()


def _key(obj: Object) -> ClaimKey:
    return str(obj["metadata"].get("namespace")), str(obj["metadata"]["name"])


def _read_terms(volume: Mapping[str, Any]) -> NodeTerms | None:
    """Return the terms of which the node of a PersistentVolume must meet one; None for any node."""
    affinity = mapping(mapping(volume.get("spec")).get("nodeAffinity"))
    required = mapping(affinity.get("required"))
    return read_terms(required) if required else None


def _trim_volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what we read of a PersistentVolume."""
    spec = mapping(volume.get("spec"))
    kept = {key: spec[key] for key in ("nodeAffinity",) if key in spec}
    return {"metadata": _identity(volume), "spec": kept}


def _trim_claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what we read of a PersistentVolumeClaim."""
    spec = mapping(claim.get("spec"))
    kept = {key: spec[key] for key in ("volumeName",) if key in spec}
    return {"metadata": _identity(claim), "spec": kept}


def _identity(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = mapping(obj.get("metadata"))
    keys = ("name", "namespace", "uid", "resourceVersion")
    return {key: metadata[key] for key in keys if key in metadata}
