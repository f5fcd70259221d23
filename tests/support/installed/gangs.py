"""Gated gangs for the end-to-end tests: made, watched, checked."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import orjson

from kube import marks
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.kube.pods import PodBuilder, a_new_pod


def a_gang_pod(gang: str, index: int, *, size: int, gpus: int, **spec: object) -> PodBuilder:
    """A pod as a user writes it."""
    pod = a_new_pod(f"{gang}-{index}").with_gpus(gpus).in_gang(gang, size=size).of_class("test")
    return pod.ending_at_once().with_spec(**spec)


def gang_pods(name: str, *, size: int, gpus: int) -> list[PodBuilder]:
    """A gang of equal members."""
    return [a_gang_pod(name, index, size=size, gpus=gpus) for index in range(size)]


async def create(
    plane: ControlPlane, path: str, members: Sequence[JsonObject], *, user: str = "bob"
) -> None:
    """Create pods as a user would."""
    api = plane.api_as(user)
    await asyncio.gather(*(api.create(path, member) for member in members))


async def running(plane: ControlPlane, path: str, gang: str, *, size: int) -> list[JsonObject]:
    """The members of a gang, once all of them run."""
    return [
        await plane.api.wait_until(
            f"{path}/{gang}-{index}", lambda pod: pod["status"].get("phase") == "Running"
        )
        for index in range(size)
    ]


async def end(plane: ControlPlane, path: str, gang: str, *, size: int) -> None:
    """End a gang, as if its work were done."""
    for index in range(size):
        await plane.api.delete(f"{path}/{gang}-{index}")


async def until_empty(plane: ControlPlane, path: str) -> None:
    """Wait until no pod is left."""

    async def is_empty() -> bool:
        return not (await plane.api.get(path))["items"]

    await poll_until(is_empty, deadline_seconds=20, explain=lambda: "pods are left")


async def told(plane: ControlPlane, path: str, gang: str, *, reason: str = "") -> str:
    """What a gang's owner was told, once it was told something, or told it for that reason."""
    events = path.removesuffix("pods") + "events"

    async def message() -> str:
        about = [one for one in (await plane.api.get(events))["items"] if _is_about(one, gang)]
        found = [one for one in about if reason in ("", one["reason"])]
        return str(found[0]["message"]) if found else ""

    return await poll_until(message, deadline_seconds=10, explain=lambda: f"{gang} heard nothing")


def _is_about(event: JsonObject, gang: str) -> bool:
    return str(event["involvedObject"]["name"]).startswith(f"{gang}-")


_WORKLOADS = ("batch/cronjobs", "batch/jobs", "apps/deployments", "apps/statefulsets")


@asynccontextmanager
async def own_pods(plane: ControlPlane) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own, all gone when the next test begins."""
    name = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/pods"
    yield path
    for workloads in _WORKLOADS:  # their controllers would create the pods again
        address = f"/apis/{workloads.replace('/', f'/v1/namespaces/{name}/')}"
        await plane.api.delete(address, propagationPolicy="Background")
    await plane.api.delete(path, gracePeriodSeconds="0")
    await until_empty(plane, path)


def check_no_leaf_cell_twice(pods: list[JsonObject]) -> None:
    """No two bound pods say that they have the same leaf cell."""
    users: Counter[tuple[str, int]] = Counter()
    for pod in pods:
        if pod["spec"].get("nodeName"):
            placement = orjson.loads(pod["metadata"]["annotations"][marks.PLACEMENT_ANNOTATION])
            users.update((placement["node"], leaf) for leaf in placement["leafCells"])
    assert [use for use, count in users.items() if count > 1] == []
