"""Events: written behind, once, and never in the way."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kube.api.client import KubeClient, KubeError
from kube.api.events import Event, EventWriter
from service.clock import Clock
from tests.support.eventually import eventually
from tests.support.kube.pods import a_pod

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


class Cluster(KubeClient):
    """Keeps what is posted, or refuses everything."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.is_away = False

    async def request(self, method: str, path: str, **fields: Any) -> dict[str, Any]:
        if self.is_away:
            raise KubeError("away")
        self.posted.append((path, fields["body"]))
        return {}


def an_event(message: str = "lowered") -> Event:
    return Event.about(a_pod("bert"), reason="ClassLowered", message=message)


def test_an_event_is_about_an_object() -> None:
    written = an_event().to_object(now=NOW)
    assert written["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "lab",
        "name": "bert",
        "uid": "uid-of-bert",
    }
    assert (written["type"], written["reason"], written["message"], written["lastTimestamp"]) == (
        "Warning",
        "ClassLowered",
        "lowered",
        "2026-11-16T12:00:00Z",
    )
    assert len(an_event("x" * 5000).message) == 1024


async def test_the_same_event_is_written_once_a_minute() -> None:
    cluster, seconds = Cluster(), 0.0
    writer = EventWriter(cluster, Clock(monotonic=lambda: seconds))
    work = asyncio.create_task(writer.run())
    for _ in range(3):
        writer.write(an_event())
    writer.write(an_event("other"))
    seconds = 61.0
    writer.write(an_event())
    await eventually(lambda: len(cluster.posted) == 3)
    assert [path for path, _ in cluster.posted] == ["/api/v1/namespaces/lab/events"] * 3
    work.cancel()
    await asyncio.wait([work])


class Taken(Cluster):
    """Has everything already."""

    async def request(self, method: str, path: str, **fields: Any) -> dict[str, Any]:
        await super().request(method, path, **fields)
        raise KubeError("already exists", status=409)


async def test_what_happens_once_is_told_under_one_name_whoever_tells_it() -> None:
    """The second of two leaders finds it told."""
    event, cluster = replace(an_event(), is_unique=True), Taken()
    names = {event.to_object(now=NOW)["metadata"]["name"] for _ in range(2)}
    other = replace(event, uid="another").to_object(now=NOW)["metadata"]["name"]
    assert len(names | {other}) == 2
    writer = EventWriter(cluster, Clock())
    work = asyncio.create_task(writer.run())
    writer.write(event)
    writer.write(an_event("this one cannot be told"))
    await eventually(lambda: len(cluster.posted) == 2)
    assert writer.dropped == 1
    work.cancel()
    await asyncio.wait([work])


async def test_what_cannot_be_written_is_dropped() -> None:
    cluster = Cluster()
    cluster.is_away = True
    writer = EventWriter(cluster, Clock())
    for number in range(1005):
        writer.write(an_event(str(number)))
    assert writer.dropped == 5
    work = asyncio.create_task(writer.run())
    await eventually(lambda: writer.dropped == 1005)
    work.cancel()
    await asyncio.wait([work])
