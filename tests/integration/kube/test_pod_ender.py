"""How pods are ended, on the simulated API server: once, and not if nobody needs it any more."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kube.api.binder import PodRef
from kube.api.client import MERGE_PATCH, STRATEGIC_PATCH, KubeClient, KubeError, Object
from kube.api.pod_ender import Ended, PodEnder
from policy.errors import BackendError
from service.clock import Clock
from simulation.cluster import SimulatedCluster
from tests.support.kube.pods import a_new_pod
from tests.support.services.simulated_cluster import connected

PODS = "/api/v1/namespaces/default/pods"
BERT = f"{PODS}/bert-0"
WHY = "preempted by gang lab/gpt"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=1), tmp_path) as client:
        yield client


class Between:
    """An API server on which something happens after the first request of a kind."""

    def __init__(
        self, client: KubeClient, method: str, happens: Callable[[], Awaitable[object]]
    ) -> None:
        self._client = client
        self._method = method
        self._happens = happens
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **rest: Any) -> Object:
        self.asked.append(method)
        answer = await self._client.request(method, path, **rest)
        if method == self._method and self.asked.count(method) == 1:
            await self._happens()
        return answer


def _leads() -> None:
    """Always."""


def _always() -> bool:
    return True


async def _nothing() -> None:
    """Happens."""


def _ender(
    client: "KubeClient | Between | Refusing | Unanswering",
    check_leading: Callable[[], None] = _leads,
) -> PodEnder:
    return PodEnder(client, check_leading=check_leading, clock=Clock())  # type: ignore[arg-type] # all it uses


async def _run(client: KubeClient) -> PodRef:
    """A pod on a node without a kubelet: it goes on for ever, and is never gone."""
    pod = a_new_pod("bert-0").with_spec(schedulerName="none")
    created = await client.request("POST", PODS, body=pod)
    target = {"kind": "Node", "name": "nowhere"}
    await client.request(
        "POST", f"{BERT}/binding", body={"target": target, "metadata": {"name": "bert-0"}}
    )
    return _ref(created["metadata"]["uid"])


def _ref(uid: str) -> PodRef:
    return PodRef(namespace="default", name="bert-0", uid=uid, resource_version=None)


async def _told(client: KubeClient) -> Object | None:
    """The condition that tells of its end."""
    pod = await client.request("GET", BERT)
    found = [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    return found[0] if found else None


async def _metadata(client: KubeClient) -> Object:
    metadata: Object = (await client.request("GET", BERT))["metadata"]
    return metadata


async def _tell(client: KubeClient, why: str) -> None:
    """What a leader does first; this one died then."""
    condition = {"type": "DisruptionTarget", "status": "True", "message": why, "reason": "x"}
    await client.request(
        "PATCH",
        f"{BERT}/status",
        body={"status": {"conditions": [condition]}},
        content_type=STRATEGIC_PATCH,
    )


async def test_a_victim_is_told_why_and_has_its_own_time_to_end(client: KubeClient) -> None:
    pod = await _run(client)
    assert await _ender(client).end(pod, why=WHY, is_wanted=_always) is Ended.NOW
    told = await _told(client)
    assert told is not None
    assert (told["reason"], told["message"]) == ("PreemptionByScheduler", WHY)
    assert (await _metadata(client))["deletionGracePeriodSeconds"] == 30


async def test_a_victim_that_its_owner_ends_is_left_alone(client: KubeClient) -> None:
    pod = await _run(client)
    await client.request("DELETE", BERT, query={"gracePeriodSeconds": "600"})
    before = await client.request("GET", BERT)
    assert await _ender(client).end(pod, why=WHY, is_wanted=_always) is Ended.BY_OTHERS
    assert await client.request("GET", BERT) == before


async def test_a_victim_that_was_ended_for_the_same_reason_is_left_alone(
    client: KubeClient,
) -> None:
    pod = await _run(client)
    await _ender(client).end(pod, why=WHY, is_wanted=_always)
    before = await client.request("GET", BERT)
    assert await _ender(client).end(pod, why=WHY, is_wanted=_always) is Ended.BEFORE
    assert await _ender(client).end(pod, why="another", is_wanted=_always) is Ended.BY_OTHERS
    assert await client.request("GET", BERT) == before


@pytest.mark.parametrize("after", ["GET", "PATCH"])
async def test_a_victim_that_its_owner_ends_meanwhile_is_left_alone(
    client: KubeClient, after: str
) -> None:
    pod = await _run(client)

    async def owner_ends() -> None:
        await client.request("DELETE", BERT, query={"gracePeriodSeconds": "600"})

    ended = await _ender(Between(client, after, owner_ends)).end(pod, why=WHY, is_wanted=_always)
    assert ended is (Ended.BY_OTHERS if after == "GET" else Ended.BEFORE)
    assert (await _told(client) is None) == (after == "GET")
    assert (await _metadata(client))["deletionGracePeriodSeconds"] == 600


@pytest.mark.parametrize("after", ["GET", "PATCH"])
async def test_a_victim_that_only_changes_meanwhile_is_ended(
    client: KubeClient, after: str
) -> None:
    pod = await _run(client)

    async def kubelet_writes() -> None:
        body = {"status": {"podIP": "10.0.0.1"}}
        await client.request("PATCH", f"{BERT}/status", body=body, content_type=MERGE_PATCH)

    server = Between(client, after, kubelet_writes)
    assert await _ender(server).end(pod, why=WHY, is_wanted=_always) is Ended.NOW
    assert (await _metadata(client))["deletionTimestamp"]
    assert server.asked.count("DELETE") == (1 if after == "GET" else 2)


async def test_a_victim_whose_first_leader_died_between_the_writes_is_ended(
    client: KubeClient,
) -> None:
    pod = await _run(client)
    await _tell(client, WHY)
    server = Between(client, "PATCH", _nothing)
    assert await _ender(server).end(pod, why=WHY, is_wanted=_always) is Ended.NOW
    assert server.asked == ["GET", "DELETE"], "it has been told already"


@pytest.mark.parametrize("has_changed", [False, True], ids=["as written", "changed since"])
async def test_a_victim_that_nobody_needs_any_more_is_spared_between_the_writes(
    client: KubeClient, *, has_changed: bool
) -> None:
    pod = await _run(client)
    gone: list[str] = []

    async def preemptor_goes() -> None:
        gone.append("gpt")
        if has_changed:
            body = {"status": {"podIP": "10.0.0.1"}}
            await client.request("PATCH", f"{BERT}/status", body=body, content_type=MERGE_PATCH)

    ender = _ender(Between(client, "PATCH", preemptor_goes))
    with pytest.raises(BackendError, match="pod default/bert-0 need not end any more"):
        await ender.end(pod, why=WHY, is_wanted=lambda: not gone)
    assert await _told(client) is None
    assert "deletionTimestamp" not in await _metadata(client)


async def test_what_others_said_about_a_spared_victim_stays(client: KubeClient) -> None:
    pod = await _run(client)
    await _tell(client, "evicted")
    before = await client.request("GET", BERT)
    with pytest.raises(BackendError, match="need not end"):
        await _ender(client).end(pod, why=WHY, is_wanted=lambda: False)
    assert await client.request("GET", BERT) == before


async def test_who_does_not_lead_any_more_ends_nobody(client: KubeClient) -> None:
    pod = await _run(client)
    slept: list[str] = []

    async def sleep() -> None:
        slept.append("too long")

    def check_leading() -> None:
        if slept:
            raise BackendError("somebody else leads")

    ender = _ender(Between(client, "PATCH", sleep), check_leading)
    with pytest.raises(BackendError, match="somebody else leads"):
        await ender.end(pod, why=WHY, is_wanted=_always)
    assert "deletionTimestamp" not in await _metadata(client)


async def test_a_namesake_is_left_alone(client: KubeClient) -> None:
    await _run(client)
    before = await client.request("GET", BERT)
    ended = await _ender(client).end(_ref("another"), why=WHY, is_wanted=_always)
    assert ended is Ended.BY_OTHERS
    assert await client.request("GET", BERT) == before


async def test_a_pod_that_is_gone_or_has_finished_needs_no_end(client: KubeClient) -> None:
    assert await _ender(client).end(_ref("any"), why=WHY, is_wanted=_always) is Ended.BY_OTHERS
    pod = await _run(client)
    body = {"status": {"phase": "Succeeded"}}
    await client.request("PATCH", f"{BERT}/status", body=body, content_type=MERGE_PATCH)
    assert await _ender(client).end(pod, why=WHY, is_wanted=_always) is Ended.BY_OTHERS
    assert await _told(client) is None


class Refusing:
    """An API server on which every patch loses against somebody else's."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def request(self, method: str, path: str, **rest: Any) -> Object:
        if method == "PATCH":
            raise KubeError("the object has been modified", status=409)
        return await self._client.request(method, path, **rest)


async def test_a_victim_that_could_not_be_written_is_not_taken_for_gone(client: KubeClient) -> None:
    """Whoever preempts it would wait for ever for a pod that nobody ends."""
    pod = await _run(client)
    with pytest.raises(KubeError, match="modified"):
        await _ender(Refusing(client)).end(pod, why=WHY, is_wanted=_always)
    assert "deletionTimestamp" not in await _metadata(client)


class Unanswering:
    """An API server that deletes a pod, and whose answer is lost."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._is_lost = True

    async def request(self, method: str, path: str, **rest: Any) -> Object:
        answer = await self._client.request(method, path, **rest)
        if method == "DELETE" and self._is_lost:
            self._is_lost = False
            raise KubeError("no answer")
        return answer


async def test_a_victim_whose_deletion_was_not_answered_counts_as_ended_by_us(
    client: KubeClient,
) -> None:
    pod = await _run(client)
    ender = _ender(Unanswering(client))
    with pytest.raises(KubeError, match="no answer"):
        await ender.end(pod, why=WHY, is_wanted=_always)
    assert await ender.end(pod, why=WHY, is_wanted=_always) is Ended.NOW
    assert await ender.end(pod, why=WHY, is_wanted=_always) is Ended.BEFORE


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("EvictionByEvictionAPI", "Eviction API: evicting"),
        (
            "PreemptionByScheduler",
            "kube-scheduler: preempting to accommodate a higher priority pod",
        ),
    ],
)
async def test_a_victim_that_others_disrupt_is_ended_and_keeps_their_condition(
    client: KubeClient, reason: str, message: str
) -> None:
    pod = await _run(client)
    theirs = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-18T08:00:00Z",
    }
    await client.request(
        "PATCH",
        f"{BERT}/status",
        body={"status": {"conditions": [theirs]}},
        content_type=STRATEGIC_PATCH,
    )
    assert await _ender(client).end(pod, why=WHY, is_wanted=_always) is Ended.NOW
    assert await _told(client) == theirs
    assert "deletionTimestamp" in await _metadata(client)
