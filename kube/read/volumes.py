"""Which nodes volumes can be used on: the claims of a pod, and the node affinity of volumes."""

from collections.abc import Mapping
from typing import Any

from kube.read.node_choice import NodeTerms, read_terms
from kube.values.objects import items, mapping


def read_claims(volumes: object, *, pod: str) -> tuple[str, ...]:
    """Return the names of the PersistentVolumeClaims that a pod uses.

    The claim of a generic ephemeral volume is named after the pod and the volume.
    """
    found: dict[str, None] = {}
    for volume in items(volumes):
        name = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        if name:
            found[str(name)] = None
        elif volume.get("ephemeral"):
            found[f"{pod}-{volume.get('name')}"] = None
    return tuple(found)


def trim_volumes(volumes: object) -> list[dict[str, Any]]:
    """Keep of volumes what `read_claims` reads."""
    return [
        {
            "name": volume.get("name"),
            "persistentVolumeClaim": volume.get("persistentVolumeClaim"),
            "ephemeral": bool(volume.get("ephemeral")),
        }
        for volume in items(volumes)
        if volume.get("persistentVolumeClaim") or volume.get("ephemeral")
    ]


def read_volume_terms(volume: Mapping[str, Any]) -> NodeTerms | None:
    """Return the terms of which the node of a PersistentVolume must meet one; None for any node."""
    affinity = mapping(mapping(volume.get("spec")).get("nodeAffinity"))
    required = mapping(affinity.get("required"))
    return read_terms(required) if required else None


def trim_volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what we read of a PersistentVolume."""
    spec = mapping(volume.get("spec"))
    kept = {key: spec[key] for key in ("nodeAffinity",) if key in spec}
    return {"metadata": _identity(volume), "spec": kept}


def trim_claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what we read of a PersistentVolumeClaim."""
    spec = mapping(claim.get("spec"))
    kept = {key: spec[key] for key in ("volumeName",) if key in spec}
    return {"metadata": _identity(claim), "spec": kept}


def _identity(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = mapping(obj.get("metadata"))
    keys = ("name", "namespace", "uid", "resourceVersion")
    return {key: metadata[key] for key in keys if key in metadata}
