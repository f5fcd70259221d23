"""Both services follow the policy ConfigMaps: what both report is one Event."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kube.api.client import MERGE_PATCH, KubeClient
from kube.api.events import EventWriter
from kube.api.feed import Feed
from kube.follow.policies import PolicySink
from service.clock import Clock
from tests.support.eventually import eventually
from tests.support.policy.cluster_texts import hived_text
from tests.support.services.extender import events
from tests.support.services.simulated_cluster import simulated

CONFIG_MAPS = "/api/v1/namespaces/cellgate-system/configmaps"


class PolicyFollower:
    """A service, as far as it follows policies."""

    def __init__(self, client: KubeClient) -> None:
        self._events = EventWriter(client, Clock())
        self.sink = PolicySink(self._events)
        self._feed = Feed(client, self.sink.source("cellgate-system"), clock=Clock())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._feed.run())
            group.create_task(self._events.run())


async def test_an_invalid_document_gets_one_event_for_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated(tmp_path, policies={"cluster": hived_text(lab=1)}) as client:
        attempts = _count_writes(client, monkeypatch)
        services = [PolicyFollower(client), PolicyFollower(client)]
        tasks = [asyncio.create_task(service.run()) for service in services]
        await _all_have(services, hived_text(lab=1), problems=0)
        await _apply(client, hived_text(lab=98))
        await _all_have(services, hived_text(lab=1), problems=1)
        await _apply(client, hived_text(lab=2))
        await _all_have(services, hived_text(lab=2), problems=0)
        await _apply(client, hived_text(lab=98))
        await eventually(lambda: len(attempts) == 4)
        told = await events(client, about="cellgate-cluster")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert [reason for reason, _ in told] == ["InvalidPolicy"] * 2


async def _apply(client: KubeClient, text: str) -> None:
    body = {"data": {"policy.yaml": text}}
    path = f"{CONFIG_MAPS}/cellgate-cluster"
    await client.request("PATCH", path, body=body, content_type=MERGE_PATCH)


async def _all_have(services: list[PolicyFollower], text: str, *, problems: int) -> None:
    wanted = (text, problems)
    sinks = [service.sink for service in services]
    await eventually(
        lambda: all((sink.cluster_text, len(sink.problems)) == wanted for sink in sinks)
    )


def _count_writes(client: KubeClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the attempts to write an Event, once they are over."""
    request, attempts = client.request, list[str]()

    async def count(method: str, path: str, **fields: Any) -> Any:
        try:
            return await request(method, path, **fields)
        finally:
            attempts.extend([path] if path.endswith("/events") and method == "POST" else [])

    monkeypatch.setattr(client, "request", count)
    return attempts
