"""The label by which the Service finds the leader, on the simulated API server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from extender import leader_role
from extender.leader_role import LeaderRole, SoleReplica
from kube.api.client import KubeClient, KubeError, Object
from kube.api.leadership import LeaderLabel
from kube.marks import LEADER_LABEL
from service.clock import Clock
from simulation.cluster import SimulatedCluster
from tests.support.services.simulated_cluster import connected

PODS = "/api/v1/namespaces/default/pods"


class Moody:
    """An API server that refuses the first patches."""

    def __init__(self, client: KubeClient, *, refusals: int) -> None:
        self._client = client
        self._refusals = refusals

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, **rest: Any
    ) -> Object:
        if method == "PATCH" and self._refusals:
            self._refusals -= 1
            raise KubeError("too many requests", status=429)
        return await self._client.request(method, path, query=query, **rest)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=1), tmp_path) as client:
        for name in ("extender-a", "extender-b"):
            body = {
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "main", "image": "none"}]},
            }
            await client.request("POST", PODS, body=body)
        yield client


def a_label(client: KubeClient, pod: str, *, refusals: int = 0) -> LeaderLabel:
    moody = Moody(client, refusals=refusals)
    return LeaderLabel(moody, namespace="default", pod=pod)  # type: ignore[arg-type]


async def labelled(client: KubeClient) -> list[str]:
    query = {"labelSelector": f"{LEADER_LABEL}=true"}
    return [
        item["metadata"]["name"]
        for item in (await client.request("GET", PODS, query=query))["items"]
    ]


async def test_the_label_moves_to_the_leader(client: KubeClient) -> None:
    await a_label(client, "extender-a").move_here()
    await a_label(client, "extender-b").move_here()
    assert await labelled(client) == ["extender-b"]


async def test_a_label_that_was_refused_at_first_or_taken_away_comes_back(
    client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kube-scheduler finds nobody without it: a leader must not do without for a whole term."""
    monkeypatch.setattr(leader_role, "_SHOW_SECONDS", 0.01)
    monkeypatch.setattr(leader_role, "_SHOW_AGAIN_SECONDS", 0.01)
    leader = LeaderRole(SoleReplica(Clock()), label=a_label(client, "extender-a", refusals=2))
    await leader.recover(asyncio.sleep(0))
    showing = asyncio.create_task(leader.show())
    await _until_labelled(client, "extender-a")
    await a_label(client, "extender-b").move_here()  # a leader that woke up late
    await _until_labelled(client, "extender-a")
    showing.cancel()


async def _until_labelled(client: KubeClient, pod: str) -> None:
    async with asyncio.timeout(10):
        while await labelled(client) != [pod]:
            await asyncio.sleep(0.01)
