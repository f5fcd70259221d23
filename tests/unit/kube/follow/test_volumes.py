"""Which nodes suit the volumes of a pod, as claims and volumes come and go."""

from typing import Any

import pytest

from kube.follow.volumes import ClaimKey, ClaimSink, Volumes, VolumeSink
from kube.read.node_choice import NodeRequirement, read_claims, trim_volumes

TERMS = ((NodeRequirement("disk", "In", ("fast",)),),)


def _claim(name: str, volume: str | None) -> dict[str, Any]:
    spec = {"volumeName": volume, "resources": {}} if volume else {}
    return {"metadata": {"name": name, "namespace": "lab"}, "spec": spec}


def _volume(name: str, *, is_local: bool = True) -> dict[str, Any]:
    rule = {"key": "disk", "operator": "In", "values": ["fast"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    spec = {"nodeAffinity": affinity} if is_local else {}
    return {"metadata": {"name": name}, "spec": {**spec, "capacity": {}}}


@pytest.fixture
def volumes() -> Volumes:
    return Volumes()


def test_the_claims_of_a_pod_are_read() -> None:
    listed = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "train"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "config", "configMap": {"name": "c"}},
    ]
    assert read_claims(trim_volumes(listed), pod="bert-0") == ("train", "bert-0-scratch")
    assert read_claims(None, pod="bert-0") == ()
    assert len(trim_volumes(listed)) == 2


def test_a_claim_is_restricted_by_its_volume(volumes: Volumes) -> None:
    claims, stored = ClaimSink(volumes), VolumeSink(volumes)
    key: ClaimKey = ("lab", "train")
    told: list[ClaimKey] = []
    volumes.on_change.append(told.append)
    stored.upsert(_volume("pv"))
    claims.upsert(_claim("train", None))
    assert (volumes.terms([key]), told) == ((), [])
    claims.upsert(_claim("train", "pv"))
    claims.upsert(_claim("train", "pv"))
    assert (volumes.terms([key]), told) == ((TERMS,), [key])
    stored.upsert(_volume("pv", is_local=False))
    assert (volumes.terms([key]), told) == ((), [key, key])
    stored.upsert(_volume("pv"))
    claims.remove(_claim("train", "pv"))
    assert (volumes.terms([key]), told) == ((), [key] * 4)


def test_what_is_missing_from_a_list_is_gone(volumes: Volumes) -> None:
    claims, stored = ClaimSink(volumes), VolumeSink(volumes)
    stored.replace([_volume("a"), _volume("b")])
    claims.replace([_claim("x", "a"), _claim("y", "b")])
    stored.replace([_volume("b")])
    assert volumes.terms([("lab", "x"), ("lab", "y")]) == (TERMS,)
    claims.replace([])
    assert volumes.terms([("lab", "x"), ("lab", "y")]) == ()
