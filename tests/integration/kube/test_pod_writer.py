"""What the planner does to pods, on the simulated API server."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kube.api.binder import PodRef
from kube.api.client import MERGE_PATCH, KubeClient, KubeError, Object
from kube.api.pod_writer import PodWriter
from kube.marks import PLACEMENT_ANNOTATION, QUEUED_GATE
from policy.errors import BackendError
from simulation.cluster import SimulatedCluster
from tests.support.kube.pods import a_new_pod
from tests.support.services.simulated_cluster import connected

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=1), tmp_path) as client:
        yield client


def _leads() -> None:
    """Always."""


def _writer(client: KubeClient, *, check_leading: Callable[[], None] = _leads) -> PodWriter:
    return PodWriter(client, check_leading=check_leading)


async def _create(client: KubeClient, *gates: str) -> PodRef:
    named = [{"name": gate} for gate in gates]
    pod = a_new_pod("bert-0").with_spec(schedulerName="none", schedulingGates=named)
    created = await client.request("POST", PODS, body=pod)
    return PodRef(
        namespace="default", name="bert-0", uid=created["metadata"]["uid"], resource_version=None
    )


async def _read(client: KubeClient) -> dict[str, Any]:
    return await client.request("GET", f"{PODS}/bert-0")


async def test_a_released_pod_is_nominated_told_its_place_and_free_of_our_gate(
    client: KubeClient,
) -> None:
    pod = await _create(client, QUEUED_GATE, "example.com/other")
    await _writer(client).release(pod, node="n7", annotations={PLACEMENT_ANNOTATION: "there"})
    now = await _read(client)
    assert now["spec"]["schedulingGates"] == [{"name": "example.com/other"}]
    assert now["metadata"]["annotations"][PLACEMENT_ANNOTATION] == "there"
    assert now["status"]["nominatedNodeName"] == "n7"


async def test_a_release_can_be_repeated(client: KubeClient) -> None:
    pod = await _create(client, QUEUED_GATE)
    for _ in range(2):
        await _writer(client).release(pod, node="n7", annotations={PLACEMENT_ANNOTATION: "x"})
    assert not (await _read(client))["spec"].get("schedulingGates")


async def test_a_namesake_is_left_alone(client: KubeClient) -> None:
    pod = await _create(client, QUEUED_GATE)
    other = PodRef(namespace="default", name="bert-0", uid="another", resource_version=None)
    writer = _writer(client)
    with pytest.raises(KubeError):
        await writer.release(other, node="n7", annotations={})
    now = await _read(client)
    assert now["metadata"]["uid"] == pod.uid
    assert now["spec"]["schedulingGates"] == [{"name": QUEUED_GATE}]


async def test_who_slept_between_the_two_writes_does_not_release(client: KubeClient) -> None:
    pod = await _create(client, QUEUED_GATE)

    def sleeps() -> None:
        raise BackendError("somebody else leads")

    with pytest.raises(BackendError, match="somebody else leads"):
        await _writer(client, check_leading=sleeps).release(pod, node="n7", annotations={})
    assert (await _read(client))["spec"]["schedulingGates"] == [{"name": QUEUED_GATE}]


class Overtaken:
    """An API server on which the next leader comes between any two of our writes."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def request(self, method: str, path: str, **rest: Any) -> Object:
        answer = await self._client.request(method, path, **rest)
        body = {"metadata": {"annotations": {PLACEMENT_ANNOTATION: "there"}}}
        await self._client.request("PATCH", f"{PODS}/bert-0", body=body, content_type=MERGE_PATCH)
        return answer


async def test_a_pod_that_was_told_another_place_meanwhile_keeps_it(client: KubeClient) -> None:
    pod = await _create(client, QUEUED_GATE)
    writer = _writer(Overtaken(client))  # type: ignore[arg-type] # all that it uses
    with pytest.raises(KubeError) as caught:
        await writer.release(pod, node="n7", annotations={PLACEMENT_ANNOTATION: "here"})
    assert caught.value.is_conflict
    assert (await _read(client))["metadata"]["annotations"][PLACEMENT_ANNOTATION] == "there"
