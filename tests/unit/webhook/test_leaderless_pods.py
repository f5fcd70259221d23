"""Gated pods are told by one webhook while no extender leads."""

from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.api.events import Event
from service.clock import Clock
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark
from webhook.leaderless_pods import ELECTION, LeaderlessPods, build_election


class Api(KubeClient):
    """An API server with Leases and pods, in pages of two."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Any]] = {}
        self.pods: list[PodBuilder] = []
        self.lists = 0
        self.is_forbidden = False
        self._version = 0

    def renew(self, holder: str = "extender-0") -> None:
        self._store(marks.EXTENDER_LEADERSHIP, {"spec": {"holderIdentity": holder}})

    def _store(self, name: str, lease: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        metadata = {**lease.get("metadata", {}), "resourceVersion": str(self._version)}
        self.leases[name] = {**lease, "metadata": metadata}
        return self.leases[name]

    async def request(self, method: str, path: str, **fields: Any) -> dict[str, Any]:
        if path == "/api/v1/pods":
            return self._list(fields["query"])
        name = path.rpartition("/")[2]
        if method == "POST":
            return self._store(ELECTION, fields["body"])
        if self.is_forbidden and name == marks.EXTENDER_LEADERSHIP:
            raise KubeError("forbidden", status=403)
        if name not in self.leases:
            raise KubeError("missing", status=404)
        if method == "GET":
            return self.leases[name]
        known = self.leases[name]["metadata"]["resourceVersion"]
        if fields["body"]["metadata"]["resourceVersion"] != known:
            raise KubeError("conflict", status=409)
        return self._store(name, fields["body"])

    def _list(self, query: dict[str, str]) -> dict[str, Any]:
        self.lists += 1
        start = int(query.get("continue", "0"))
        more = {"continue": str(start + 2)} if start + 2 < len(self.pods) else {}
        return {"metadata": more, "items": self.pods[start : start + 2]}


class World:
    """One API server and two webhooks."""

    def __init__(self) -> None:
        self.api = Api()
        self.api.renew()
        self.now = 0.0
        self.clock = Clock(monotonic=lambda: self.now)
        self.events = [KeptEvents(), KeptEvents()]
        self.webhooks = [self._webhook(index) for index in range(2)]

    def _webhook(self, index: int) -> LeaderlessPods:
        identity = f"webhook-{index}"
        election = build_election(self.api, namespace="x", identity=identity, clock=self.clock)
        return LeaderlessPods(
            self.api, namespace="x", election=election, events=self.events[index], clock=self.clock
        )

    async def after(self, seconds: int, *, is_led: bool = False) -> list[Event]:
        """What was written until then, by whichever webhook."""
        for _ in range(seconds // 5):
            self.now += 5
            if is_led:
                self.api.renew()
            for webhook in self.webhooks:
                await webhook.look()
        return [event for kept in self.events for event in kept.written]


@pytest.fixture
def world() -> World:
    world = World()
    world.api.pods = [a_pod(f"p{index}").with_gpus(8).gated() for index in range(3)]
    world.api.pods.append(a_pod("other").with_gpus(8))
    return world


async def test_pods_are_told_within_a_minute_by_one_webhook(world: World) -> None:
    assert await world.after(60, is_led=True) == []
    told = await world.after(60)
    assert [(event.name, event.reason) for event in told] == [
        (f"p{index}", "NoExtenderLeads") for index in range(3)
    ]
    assert sorted(len(kept.written) for kept in world.events) == [0, 3]


async def test_a_change_of_leaders_is_not_reported(world: World) -> None:
    for _ in range(5):
        assert await world.after(15) == []
        world.api.renew("extender-1")
    await world.after(5)
    world.api.renew(holder="")  # resigned, and none has taken over
    assert await world.after(15) == []


async def test_writes_stop_when_an_extender_leads_again(world: World) -> None:
    await world.after(60)
    world.api.pods.append(a_pod("late").with_gpus(8).gated())
    assert len(await world.after(60, is_led=True)) == 3
    lists = world.api.lists
    await world.after(60, is_led=True)
    assert world.api.lists == lists
    assert len(await world.after(60)) == 7, "another outage is told again"


async def test_an_event_is_repeated_after_half_an_hour(world: World) -> None:
    assert len(await world.after(1800)) == 3
    assert len(await world.after(60)) == 6


async def test_many_pods_are_told_a_few_at_a_time(world: World) -> None:
    world.api.pods = [a_pod(f"p{index}").with_gpus(8).gated() for index in range(600)]
    await world.after(20)
    counts = [len(await world.after(5)) for _ in range(4)]
    assert counts == [250, 500, 600, 600]


async def test_a_workload_is_told_once(world: World) -> None:
    world.api.pods = [
        pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("train")) for pod in world.api.pods
    ]
    told = await world.after(60)
    assert [event.name for event in told if event.kind == "Job"] == ["train"]


async def test_without_the_right_to_read_the_lease_nothing_is_said(world: World) -> None:
    world.api.is_forbidden = True
    assert await world.after(120) == []


async def test_a_lease_that_is_missing_has_no_leader(world: World) -> None:
    del world.api.leases[marks.EXTENDER_LEADERSHIP]
    assert len(await world.after(60)) == 3
