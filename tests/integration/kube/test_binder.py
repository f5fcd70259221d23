"""Bindings that lose a race, on the simulated API server."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kube.api.binder import Binder, PodRef
from kube.api.client import MERGE_PATCH, KubeClient, KubeError
from kube.marks import PLACEMENT_ANNOTATION
from policy.errors import BackendError
from simulation.cluster import SimulatedCluster
from tests.support.kube.pods import a_new_pod
from tests.support.services.simulated_cluster import connected

PODS = "/api/v1/namespaces/default/pods"
HERE = {PLACEMENT_ANNOTATION: "here"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=2), tmp_path) as client:
        yield client


async def _create(client: KubeClient) -> PodRef:
    pod = a_new_pod("bert-0").with_metadata(annotations=HERE).with_spec(schedulerName="none")
    created = await client.request("POST", PODS, body=pod)
    uid, version = (created["metadata"][key] for key in ("uid", "resourceVersion"))
    return PodRef(namespace="default", name="bert-0", uid=uid, resource_version=version)


async def _change(client: KubeClient, **metadata: Any) -> None:
    body = {"metadata": metadata}
    await client.request("PATCH", f"{PODS}/bert-0", body=body, content_type=MERGE_PATCH)


async def _node(client: KubeClient) -> str | None:
    pod = await client.request("GET", f"{PODS}/bert-0")
    node: str | None = pod["spec"].get("nodeName")
    return node


class Leads:
    """Leads for so many questions."""

    def __init__(self, times: int) -> None:
        self._times = times

    def __call__(self) -> None:
        self._times -= 1
        if self._times < 0:
            raise BackendError("another replica leads")


def leads() -> None:
    """Always."""


async def _bind(client: KubeClient, pod: PodRef, *, check_leading: Callable[[], None]) -> None:
    binder = Binder(client, check_leading=check_leading)
    await binder.bind(pod, node="node-00", annotations=HERE)


async def test_a_pod_that_changed_in_nothing_that_matters_is_bound(client: KubeClient) -> None:
    pod = await _create(client)
    await _change(client, labels={"a": "b"})
    await _bind(client, pod, check_leading=leads)
    assert await _node(client) == "node-00"


async def test_who_slept_and_leads_no_longer_does_not_try_again(client: KubeClient) -> None:
    pod = await _create(client)
    await _change(client, labels={"a": "b"})
    with pytest.raises(BackendError, match="another replica leads"):
        await _bind(client, pod, check_leading=Leads(times=1))
    assert await _node(client) is None


async def test_a_pod_that_was_told_another_place_is_left_alone(client: KubeClient) -> None:
    """By the next leader, which has given the first place to somebody else."""
    pod = await _create(client)
    await _change(client, annotations={PLACEMENT_ANNOTATION: "there"})
    with pytest.raises(KubeError):
        await _bind(client, pod, check_leading=leads)
    assert await _node(client) is None
