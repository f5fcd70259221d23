"""Victims of the planner on a real control plane: who ends, what they are told, who comes after.

Also what else takes promised cells away: pods that Cellgate did not place, and bad nodes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import (
    a_gang_pod,
    create,
    end,
    gang_pods,
    own_pods,
    running,
    told,
)
from tests.support.installed.installation import Installation
from tests.support.installed.leaders import leader_of, two_extenders
from tests.support.installed.policies import delete_policy, promise_nodes, put_policy
from tests.support.installed.replays import check_replays
from tests.support.kube.pods import PodBuilder

NODES = 3
HOLD = "example.com/hold"
STOP_FOR = "test.cellgate.io/stop-for"
"""How long the fake kubelet takes to stop a deleted pod."""


@pytest.fixture(scope="module")
def node_count() -> int:
    return NODES


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and a VC that is promised everything."""
    async with two_extenders(plane) as installation:
        await promise_nodes(plane, NODES)
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def pods(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own; none has a finalizer when it is over."""
    async with own_pods(plane) as path:
        yield path
        await _let_go(plane, path)


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


def _borrowers(name: str, *, size: int) -> list[PodBuilder]:
    """An opportunistic gang whose pods end only once the test lets them go."""
    return _held([pod.of_class("oppo") for pod in gang_pods(name, size=size, gpus=8)])


def _held(pods: list[PodBuilder]) -> list[PodBuilder]:
    """Pods that end only once the test lets them go."""
    return [pod.with_metadata(finalizers=[HOLD]).annotated(STOP_FOR, "1h") for pod in pods]


async def _let_go(plane: ControlPlane, path: str) -> None:
    for pod in (await plane.api.get(path))["items"]:
        if HOLD in pod["metadata"].get("finalizers", ()):
            name = pod["metadata"]["name"]
            await plane.api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})


async def _ending(plane: ControlPlane, path: str, *, count: int) -> list[JsonObject]:
    """The pods that were told to end, once there are so many."""

    async def found() -> list[JsonObject]:
        pods = (await plane.api.get(path))["items"]
        ending = [pod for pod in pods if pod["metadata"].get("deletionTimestamp")]
        return ending if len(ending) >= count else []

    return await poll_until(found, deadline_seconds=20, explain=lambda: "no pod was ended")


async def _told_of_their_end(plane: ControlPlane, path: str) -> list[str]:
    """The pods that were told that they are preempted, once for each time."""
    events = (await plane.api.get(path.removesuffix("pods") + "events"))["items"]
    told = [one for one in events if one["reason"] == "Preempted"]
    assert all("is preempted by gang" in one["message"] for one in told)
    return sorted(one["involvedObject"]["name"] for one in told)


async def _are_told(plane: ControlPlane, path: str, *, count: int) -> list[str]:
    """The same, once there are so many."""

    async def found() -> list[str]:
        names = await _told_of_their_end(plane, path)
        return names if len(names) >= count else []

    return await poll_until(found, deadline_seconds=10, explain=lambda: "too few were told")


def _reasons(pod: JsonObject) -> list[JsonObject]:
    """Why a pod ends, as its conditions tell."""
    return [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]


def _names(pods: list[JsonObject]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


async def test_a_victim_ends_whole_and_is_told_for_whom(plane: ControlPlane, pods: str) -> None:
    await create(plane, pods, _borrowers("low", size=2))
    await running(plane, pods, "low", size=2)
    await create(plane, pods, gang_pods("high", size=2, gpus=8))
    victims = await _ending(plane, pods, count=2)
    assert _names(victims) == ["low-0", "low-1"]
    namespace = pods.split("/")[4]
    for victim in victims:
        (condition,) = _reasons(victim)
        assert condition["reason"] == "PreemptionByScheduler"
        assert f"is preempted by gang {namespace}/high" in condition["message"]
    assert await _are_told(plane, pods, count=2) == _names(victims)
    await _let_go(plane, pods)
    await running(plane, pods, "high", size=2)


@asynccontextmanager
async def _undeletable(plane: ControlPlane, path: str, name: str) -> AsyncIterator[None]:
    """Let the API server refuse to delete a pod for a while."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    bindings = f"{policies.removesuffix('policies')}policybindings"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    of_pod = f"oldObject.metadata.namespace + '/' + oldObject.metadata.name != '{name}'"
    spec = {
        "matchConstraints": {"resourceRules": [{**pods, "operations": ["DELETE"]}]},
        "validations": [{"expression": of_pod, "message": "not now"}],
    }
    metadata = {"metadata": {"name": "undeletable"}}
    await plane.api.create(policies, {**metadata, "spec": spec})
    binding = {"policyName": "undeletable", "validationActions": ["Deny"]}
    await plane.api.create(bindings, {**metadata, "spec": binding})

    async def is_in_force() -> bool:
        try:
            await plane.api.delete(f"{path}/{name.split('/')[1]}", dryRun="All")
        except ApiError as error:
            return "not now" in str(error)
        return False

    try:
        await poll_until(is_in_force, deadline_seconds=20, explain=lambda: "no policy in force")
        yield
    finally:
        await plane.api.delete(f"{bindings}/undeletable")
        await plane.api.delete(f"{policies}/undeletable")


async def test_a_victim_ends_whole_although_its_preemptor_goes_away(
    plane: ControlPlane, pods: str
) -> None:
    """Also: what another program said about the end of a pod stays."""
    namespace = pods.split("/")[4]
    await create(plane, pods, _borrowers("low", size=NODES))
    await running(plane, pods, "low", size=NODES)
    drained = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    now = {"lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    status = {"status": {"conditions": [{**drained, **now, "message": "drained by a test"}]}}
    await plane.api.patch(f"{pods}/low-0/status", status, kind="strategic")
    async with _undeletable(plane, pods, f"{namespace}/low-1"):
        await create(plane, pods, gang_pods("high", size=1, gpus=8))
        assert _names(await _ending(plane, pods, count=2)) == ["low-0", "low-2"]
        await end(plane, pods, "high", size=1)
    ending = await _ending(plane, pods, count=NODES)
    assert _names(ending) == ["low-0", "low-1", "low-2"]
    reasons = [one["reason"] for pod in ending for one in _reasons(pod)]
    assert reasons == ["EvictionByEvictionAPI", *["PreemptionByScheduler"] * 2]


async def test_a_new_leader_ends_nobody_but_the_victims_of_the_one_before(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    for name in ("a", "b", "c"):
        await create(plane, pods, _borrowers(name, size=1))
        await running(plane, pods, name, size=1)
    await create(plane, pods, gang_pods("high", size=1, gpus=8))
    (victim,) = await _ending(plane, pods, count=1)
    leader = await leader_of(cellgate)
    cellgate.extenders[leader].kill()
    await leader_of(cellgate, other_than=leader)
    await cellgate.start_extender(leader)
    await create(plane, pods, gang_pods("late", size=1, gpus=8))
    both = await _ending(plane, pods, count=2)
    assert len(both) == 2
    assert _reasons(victim) in map(_reasons, both), "what the leader before has done is done"
    await _let_go(plane, pods)
    await running(plane, pods, "high", size=1)
    await running(plane, pods, "late", size=1)
    assert await _are_told(plane, pods, count=2) == sorted(_names(both))


async def test_whom_its_owner_has_ended_is_left_alone(plane: ControlPlane, pods: str) -> None:
    await create(plane, pods, _borrowers("low", size=NODES))
    await running(plane, pods, "low", size=NODES)
    for index in range(NODES):
        await plane.api.delete(f"{pods}/low-{index}")
    await _ending(plane, pods, count=NODES)
    await create(plane, pods, gang_pods("high", size=NODES, gpus=8))
    await told(plane, pods, "high")
    assert list(map(_reasons, await _ending(plane, pods, count=NODES))) == [[]] * NODES
    await _let_go(plane, pods)
    await running(plane, pods, "high", size=NODES)
    assert await _told_of_their_end(plane, pods) == []


async def _hears(plane: ControlPlane, path: str, words: str) -> None:
    """Wait until an Event says this."""

    async def is_told() -> bool:
        events = (await plane.api.get(path.removesuffix("pods") + "events"))["items"]
        return any(words in one["message"] for one in events)

    await poll_until(is_told, deadline_seconds=20, explain=lambda: f"no Event says: {words}")


async def test_nobody_ends_beside_a_gang_that_its_owner_has_deleted(
    plane: ControlPlane, pods: str
) -> None:
    """It takes its time to end, like one with a long grace period."""
    for name in ("a", "b", "c"):
        await create(plane, pods, _borrowers(name, size=1))
        await running(plane, pods, name, size=1)
    await plane.api_as("bob").delete(f"{pods}/a-0")  # the oldest work, which would go last
    await _ending(plane, pods, count=1)
    await create(plane, pods, gang_pods("high", size=1, gpus=8))
    namespace = pods.split("/")[4]
    await _hears(plane, pods, f"starts once {namespace}/a has ended")
    assert _names(await _ending(plane, pods, count=1)) == ["a-0"]
    await plane.api.patch(f"{pods}/a-0", {"metadata": {"finalizers": None}})
    await running(plane, pods, "high", size=1)
    left = (await plane.api.get(pods))["items"]
    assert _names(left) == ["b-0", "c-0", "high-0"]
    assert not any(pod["metadata"].get("deletionTimestamp") for pod in left)


async def test_a_late_member_ends_who_took_its_place(plane: ControlPlane, pods: str) -> None:
    await create(plane, pods, gang_pods("bert", size=NODES, gpus=8))
    await running(plane, pods, "bert", size=NODES)
    await plane.api.delete(f"{pods}/bert-0")
    await create(plane, pods, _borrowers("low", size=1))
    await running(plane, pods, "low", size=1)
    await create(plane, pods, gang_pods("bert", size=NODES, gpus=8)[:1])
    assert _names(await _ending(plane, pods, count=1)) == ["low-0"]
    await _let_go(plane, pods)
    await running(plane, pods, "bert", size=NODES)
    await end(plane, pods, "bert", size=NODES)


async def test_foreign_pods_on_promised_cells_are_named_and_by_policy_ended(
    plane: ControlPlane, pods: str
) -> None:
    namespace = pods.split("/")[4]
    nodes = [node["metadata"]["name"] for node in await plane.api.list("/api/v1/nodes")]
    strays = [
        a_gang_pod(f"stray-{index}", 0, size=1, gpus=8).of_class("oppo").with_spec(nodeName=node)
        for index, node in enumerate(nodes)
    ]
    for stray in strays:
        await plane.api.create(pods, stray)  # an admin may, a user may not
    await create(plane, pods, gang_pods("owner", size=2, gpus=8))
    reason = await told(plane, pods, "owner", reason="Waiting")
    for stray in strays:
        name, node = stray["metadata"]["name"], stray["spec"]["nodeName"]
        assert f"{namespace}/{name} of admin on node {node} (8)" in reason
    assert "24 of the leaf cells that it could use are in use by 3 pods" in reason

    await promise_nodes(plane, NODES, more="foreign: reclaim")
    await running(plane, pods, "owner", size=2)
    events = (await plane.api.get(pods.removesuffix("pods") + "events"))["items"]
    ended = [one["message"] for one in events if one["reason"] == "Preempted"]
    assert len(ended) == 2
    assert all("the Cluster document says `foreign: reclaim`" in message for message in ended)
    await promise_nodes(plane, NODES)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _bound_at(pod: JsonObject) -> datetime:
    conditions = {one["type"]: one for one in pod["status"]["conditions"]}
    return _moment(conditions["PodScheduled"]["lastTransitionTime"])


async def test_a_gang_runs_for_the_minimum_is_told_and_then_goes(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """Also: who preempted whom by which rule is on record, for both."""
    namespace = pods.split("/")[4]
    rules = "levels: [{name: all, strategy: priority}]\npreemption: {minimumRun: 6s, grace: 2s}\n"
    await put_policy(plane, "queues", rules)
    try:
        await create(plane, pods, _held(gang_pods("low", size=NODES, gpus=8)))
        low = await running(plane, pods, "low", size=NODES)
        high = a_gang_pod("high", 0, size=1, gpus=8).of_class("prod")
        await create(plane, pods, [high], user="admin")  # whose class is not lowered
        await _hears(plane, pods, f"it may preempt {namespace}/low of its own VC default once that")
        assert not any(pod["metadata"].get("deletionTimestamp") for pod in low)
        notice = await told(plane, pods, "low", reason="PreemptionNotice")
        assert notice.startswith("ends in 2 s (`preemption.grace` of the Queues document)")
        by_rule = f"gang {namespace}/low (priority 10) is preempted by gang {namespace}/high"
        assert by_rule in notice
        ended = await _ending(plane, pods, count=NODES)
        last = max(_moment(pod["metadata"]["deletionTimestamp"]) for pod in ended)
        assert (last - min(map(_bound_at, low))).total_seconds() >= 7
        await _hears(plane, pods, f"starts once {namespace}/low has ended")
        await _let_go(plane, pods)
        await running(plane, pods, "high", size=1)
        told_low = await cellgate.inspect(f"/v1/explain/{namespace}/low")
        assert by_rule in told_low["ended"]["why"]
        outcomes = {(row["kind"], row["outcome"]) for row in told_low["decisions"]}
        assert {("preemption", "warned"), ("preemption", "evicted")} <= outcomes
        told_high = await cellgate.inspect(f"/v1/explain/{namespace}/high")
        (row, *_) = [one for one in told_high["decisions"] if one["outcome"] == "preempting"]
        assert row["details"]["decision"]["victims"] == [f"{namespace}/low"]
    finally:
        await delete_policy(plane, "queues")


async def _fail_at_start(
    plane: ControlPlane, path: str, name: str, *, user: str, node: str
) -> None:
    """A gang of one runs on a node and fails there at once."""
    selector = {"kubernetes.io/hostname": node}
    pod = a_gang_pod(name, 0, size=1, gpus=8, nodeSelector=selector)
    await create(plane, path, [pod], user=user)
    await running(plane, path, name, size=1)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    ended = {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}
    container = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [{**container, "state": {"terminated": ended}}]
    status = {"phase": "Failed", "containerStatuses": statuses}
    await plane.api.patch(f"{path}/{name}-0/status", {"status": status})


async def test_a_retry_avoids_the_node_on_which_its_gang_failed(
    plane: ControlPlane, pods: str
) -> None:
    for _ in range(2):  # the first free node is the same each time
        await create(plane, pods, gang_pods("probe", size=1, gpus=8))
        (first,) = await running(plane, pods, "probe", size=1)
        await end(plane, pods, "probe", size=1)
    bad = first["spec"]["nodeName"]
    await _fail_at_start(plane, pods, "retry", user="bob", node=bad)
    await plane.api.delete(f"{pods}/retry-0")
    await create(plane, pods, gang_pods("retry", size=1, gpus=8))
    (retried,) = await running(plane, pods, "retry", size=1)
    assert retried["spec"]["nodeName"] != bad


async def test_a_node_on_which_several_workloads_fail_is_left_out_until_an_admin_clears_it(
    plane: ControlPlane, pods: str
) -> None:
    await promise_nodes(plane, NODES, more="quarantine: {workloads: 2}")
    bad = (await plane.api.get("/api/v1/nodes"))["items"][0]["metadata"]["name"]
    for name, user in (("one", "bob"), ("two", "alice")):
        await _fail_at_start(plane, pods, name, user=user, node=bad)
    path = f"/api/v1/nodes/{bad}"
    key = marks.QUARANTINE_ANNOTATION
    node = await plane.api.wait_until(
        path, lambda node: key in node["metadata"].get("annotations", {})
    )
    gangs = [f"{pods.split('/')[4]}/{name}" for name in ("one", "two")]
    blamed_by = orjson.loads(node["metadata"]["annotations"][key])["workloads"]
    assert [one for one in blamed_by if one in gangs] == gangs, "beside one of the test before"
    await create(plane, pods, gang_pods("all", size=NODES, gpus=8))
    why = await told(plane, pods, "all")
    assert f"8 of the leaf cells that it could use are bad, on node {bad} (in quarantine)" in why
    await create(plane, pods, gang_pods("rest", size=2, gpus=8))
    used = [pod["spec"]["nodeName"] for pod in await running(plane, pods, "rest", size=2)]
    assert bad not in used
    await end(plane, pods, "rest", size=2)
    await plane.api.patch(path, {"metadata": {"annotations": {key: None}}})
    await running(plane, pods, "all", size=NODES)


async def test_all_that_was_decided_above_is_decided_alike_from_the_log(
    cellgate: Installation,
) -> None:
    decided = await check_replays(cellgate.database_url)
    assert {"placement", "ordering", "release"} <= decided.keys()
