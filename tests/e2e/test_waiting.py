"""Waiting is visible everywhere: `/v1/waiting`, conditions, Events, explanations."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import create, end, gang_pods, running
from tests.support.installed.installation import Installation, installed
from tests.support.installed.jobs import submit_job, to_run_again
from tests.support.installed.policies import (
    CONFIG_MAPS,
    delete_policy,
    policy_of_admin,
    put_policy,
)
from tests.support.kube.pods import a_new_pod

QUOTAS = "groups:\n- {name: g, limits: {leafCells: 16}, over: queue, users: [{name: alice}]}\n"


@pytest.fixture(scope="module")
def plane_options(binaries: Binaries) -> ControlPlaneOptions:
    flags = ("--feature-gates=GenericWorkload=true",) if binaries.has_pod_groups else ()
    beta = "--runtime-config=scheduling.k8s.io/v1beta1=true"
    return ControlPlaneOptions(
        apiserver_flags=(*flags, beta) if flags else (),
        controller_manager_flags=flags,
        scheduler_flags=flags,
    )


@pytest.fixture(scope="module")
def node_count() -> int:
    return 2


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """With two webhooks: only one of them speaks for extenders that are away."""
    async with installed(plane, webhooks=2) as installation:
        yield installation


async def until_waiting(cellgate: Installation, **codes: str) -> dict[str, JsonObject]:
    """The entries of `/v1/waiting` by gang, once the gangs wait for these reasons."""
    found: dict[str, JsonObject] = {}

    async def look() -> bool:
        found.clear()
        found.update({one["gang"].split("/")[1]: one for one in await cellgate.waiting()})
        return {name: one["code"] for name, one in found.items()} == codes

    await poll_until(look, deadline_seconds=15, explain=lambda: f"waiting: {found}")
    return found


async def until_told(plane: ControlPlane, path: str, message: str) -> JsonObject:
    """A pod, once its condition says so."""

    def is_told(pod: JsonObject) -> bool:
        return bool(condition_of(pod)["message"] == message)

    return await plane.api.wait_until(path, is_told)


def condition_of(pod: JsonObject) -> JsonObject:
    conditions: list[JsonObject] = pod["status"]["conditions"]
    (found,) = (one for one in conditions if one["type"] == "PodScheduled")
    return found


async def events_of(plane: ControlPlane, pods: str, kind: str, reason: str) -> list[JsonObject]:
    """The Events about objects of a kind."""
    items = (await plane.api.get(pods.removesuffix("pods") + "events"))["items"]
    return [
        one for one in items if (one["involvedObject"]["kind"], one["reason"]) == (kind, reason)
    ]


async def create_native(plane: ControlPlane, pods: str) -> None:
    """A native gang of two."""
    policy = {"gang": {"minCount": 2}}
    spec = {"priorityClassName": "test", "schedulingPolicy": policy}
    group = {"metadata": {"name": "native"}, "spec": spec}
    namespace = pods.split("/")[4]
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    await plane.api.create(path, group)  # as the admin: users may not
    members = [a_new_pod(f"native-{index}").with_gpus(8) for index in range(2)]
    for pod in members:
        await plane.api.create(pods, pod.in_native_gang("native").of_class("test").ending_at_once())


async def until_all_say_why(
    plane: ControlPlane, pods: str, waiting: dict[str, JsonObject]
) -> list[JsonObject]:
    """All pods, once the condition of each that waits says why its gang waits."""
    everyone: list[JsonObject] = (await plane.api.get(pods))["items"]
    for pod in everyone:
        name = pod["metadata"]["name"]
        if name.startswith("first"):
            continue
        said = waiting[name.split("-")[0]]["condition"]
        condition = condition_of(await until_told(plane, f"{pods}/{name}", said))
        assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
        assert not any(number in said for number in ("members now", "so far"))
    return everyone


async def until_restarted_leader_has_nothing_to_say(cellgate: Installation, **codes: str) -> None:
    """Restart the leader: the next one finds the pods told, and writes nothing again."""
    written = await cellgate.extender_metric("cellgate_extender_gate_messages_total")
    assert written >= 6
    await cellgate.extender.stop()
    await cellgate.start_extender()
    await until_waiting(cellgate, **codes)
    await asyncio.sleep(5)
    assert await cellgate.extender_metric("cellgate_extender_gate_messages_total") == 0


async def test_every_waiting_gang_is_listed_and_its_pods_say_why(
    plane: ControlPlane, cellgate: Installation, pods: str, binaries: Binaries
) -> None:
    await put_policy(plane, "quotas", QUOTAS)
    await asyncio.sleep(2)  # in force on every replica by then
    await create(plane, pods, gang_pods("first", size=2, gpus=8))
    await running(plane, pods, "first", size=2)
    await submit_job(plane, pods, "job")
    await create(plane, pods, gang_pods("half", size=3, gpus=8)[:1])
    for pod in gang_pods("quota", size=3, gpus=8):
        await plane.api_as("alice").create(pods, pod)
    codes = {"job": "no-room", "half": "gathering", "quota": "quota"}
    if binaries.has_pod_groups:
        await create_native(plane, pods)
        codes["native"] = "no-room"
    found = await until_waiting(cellgate, **codes)
    assert {name: one["waitsFor"] for name, one in found.items()} == {
        name: {"no-room": "cells", "gathering": "members"}.get(code, code)
        for name, code in codes.items()
    }
    assert (found["job"]["queue"], found["job"]["place"]) == ("cells", 1)
    assert (found["quota"]["queue"], found["quota"]["place"], found["quota"]["of"]) == (
        "quota",
        1,
        1,
    )
    assert all(0 <= one["ageSeconds"] < 60 for one in found.values())
    metric = "cellgate_extender_waiting_gangs{"
    assert await cellgate.extender_metric(metric) == len(codes)

    everyone = await until_all_say_why(plane, pods, found)
    shown = await plane.kubectl("get", "pods", "-n", pods.split("/")[4])
    assert shown.stdout.count("SchedulingGated") == len(everyone) - 2
    assert [one["involvedObject"]["name"] for one in await events_of(plane, pods, "Job", "Waiting")]
    namespace = pods.split("/")[4]
    told = await cellgate.inspect(f"/v1/gangs/{namespace}/job")
    assert (told["state"], told["waiting"]["code"]) == ("waiting", "no-room")

    await until_restarted_leader_has_nothing_to_say(cellgate, **codes)
    if binaries.has_pod_groups:
        await end(plane, pods, "native", size=2)
    await end(plane, pods, "first", size=2)
    await delete_policy(plane, "quotas")
    started = await plane.api.wait_until(
        f"{pods}/{found['job']['pod'].split('/')[1]}", lambda pod: pod["spec"].get("nodeName")
    )
    assert condition_of(started)["status"] == "True"
    assert "message" not in condition_of(started)


def _queues(*, gold: str) -> str:
    level = "levels: [{name: all, strategy: fifo, worth: {userLevel: 1h}}]"
    return f"{level}\nuserLevels: {{gold: [{gold}]}}\n"


async def until_queued(cellgate: Installation, *gangs: str) -> list[JsonObject]:
    """The queue, once these gangs wait in this order."""
    found: list[JsonObject] = []

    async def look() -> bool:
        found[:] = (await cellgate.inspect("/v1/queue"))["items"]
        return [one["gang"].split("/")[1] for one in found] == list(gangs)

    await poll_until(look, deadline_seconds=15, explain=lambda: f"queue: {found}")
    return found


async def test_admins_choose_in_which_order_gangs_start(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await put_policy(plane, "queues", _queues(gold="bob"))
    await create(plane, pods, gang_pods("first", size=2, gpus=8))
    await running(plane, pods, "first", size=2)
    await create(plane, pods, gang_pods("early", size=2, gpus=8), user="bob")
    await asyncio.sleep(1.1)  # times of creation are whole seconds
    await create(plane, pods, gang_pods("late", size=2, gpus=8), user="alice")
    await until_queued(cellgate, "early", "late")

    await put_policy(plane, "queues", _queues(gold="alice"))
    ahead, behind = await until_queued(cellgate, "late", "early")
    assert "the level of user alice is worth 1 h of at most 1 h" in ahead["explanation"]
    assert behind["ahead"]["gang"] == ahead["gang"]
    assert 3500 < behind["ahead"]["bySeconds"] < 3600

    bad = policy_of_admin("queues", "levels: [{name: all, strategy: best, worth: {size: 1h}}]\n")
    with pytest.raises(ApiError) as refused:
        await plane.api.replace(f"{CONFIG_MAPS}/cellgate-queues", bad)
    for problem in ("levels[0].strategy: must be fifo", 'levels[0].worth.size: "size" is not'):
        assert problem in str(refused.value)

    await end(plane, pods, "first", size=2)
    await running(plane, pods, "late", size=2)
    await until_queued(cellgate, "early")
    await end(plane, pods, "late", size=2)
    await running(plane, pods, "early", size=2)
    await delete_policy(plane, "queues")


async def test_time_in_which_its_owner_suspends_a_job_does_not_count(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await create(plane, pods, gang_pods("first", size=2, gpus=8))
    await running(plane, pods, "first", size=2)
    await submit_job(plane, pods, "job")
    before = (await until_waiting(cellgate, job="no-room"))["job"]
    await asyncio.sleep(2.5)
    job = f"/apis/batch/v1/namespaces/{pods.split('/')[4]}/jobs/job"
    await plane.api_as("bob").patch(job, {"spec": {"suspend": True}})
    await until_waiting(cellgate)
    await asyncio.sleep(5)
    await plane.api_as("bob").patch(job, {"spec": {"suspend": False}})
    after = (await until_waiting(cellgate, job="no-room"))["job"]
    asked = [datetime.fromisoformat(one["asked"]) for one in (before, after)]
    created = await plane.api.get(f"{pods}/{after['pod'].split('/')[1]}")
    created_at = datetime.fromisoformat(created["metadata"]["creationTimestamp"])
    assert asked[1] - asked[0] >= timedelta(seconds=4), "the time while it was suspended"
    assert created_at - asked[1] >= timedelta(seconds=2), "what it had waited before"


async def test_users_hold_gangs_and_admins_holds_are_not_theirs_to_lift(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    def held(text: str | None) -> JsonObject:
        return {"metadata": {"annotations": {"cellgate.io/hold": text}}}

    members = [f"{pods}/night-{index}" for index in range(2)]
    for pod in gang_pods("night", size=2, gpus=8):
        mine = pod.annotated("cellgate.io/hold", "data is copied")
        await plane.api_as("bob").create(pods, mine)
    found = (await until_waiting(cellgate, night="held-by-user"))["night"]
    assert found["waitsFor"] == "release"
    assert found["reason"].startswith(f"its owner bob holds gang {found['gang']}: data is copied;")
    with pytest.raises(ApiError, match="only the owner"):
        await plane.api_as("alice").patch(members[0], held(None))

    await plane.api.patch(members[1], held("maintenance"))
    found = (await until_waiting(cellgate, night="held-by-admin"))["night"]
    assert "the policy admin" in found["reason"]
    with pytest.raises(ApiError, match="a policy admin may lift that"):
        await plane.api_as("bob").patch(members[1], held(None))
    await plane.api_as("bob").patch(members[0], held(None))  # the own hold

    at = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    await plane.api.patch(members[1], held(f"maintenance; until={at}"))
    await running(plane, pods, "night", size=2)
    assert datetime.now(UTC).isoformat() > at
    explained = await cellgate.inspect(f"/v1/explain/{pods.split('/')[4]}/night-0")
    rows = [row for row in explained["decisions"] if row["kind"] == "hold"]
    assert {row["outcome"] for row in rows} == {"held", "released"}


async def test_users_swap_two_of_their_gangs_and_no_other_gang_moves(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    def with_(text: str | None) -> JsonObject:
        return {"metadata": {"annotations": {"cellgate.io/swap-with": text}}}

    async def order() -> list[str]:
        queue = await cellgate.inspect("/v1/queue")
        return [one["gang"].split("/")[1] for one in queue["items"]]

    async def until_order(*names: str) -> None:
        found: list[str] = []

        async def look() -> bool:
            found[:] = await order()
            return found == [*names]

        await poll_until(look, deadline_seconds=15, explain=lambda: f"the order is {found}")

    await create(plane, pods, gang_pods("runs", size=2, gpus=8))
    await running(plane, pods, "runs", size=2)
    for name, user in (("early", "bob"), ("middle", "alice"), ("late", "bob")):
        for pod in gang_pods(name, size=2, gpus=8):
            await plane.api_as(user).create(pods, pod)
        await asyncio.sleep(1.1)  # ages are whole seconds
    await until_order("early", "middle", "late")
    bob, first = plane.api_as("bob"), f"{pods}/late-0"
    for other, why in (
        ("middle", "there is no gang or pod"),
        ("late", "must name another gang"),
        ("runs", "has started, or is about to"),
    ):
        with pytest.raises(ApiError, match=why):
            await bob.patch(first, with_(other))
    with pytest.raises(ApiError, match="only the owner"):
        await plane.api_as("alice").patch(first, with_("early"))
    await bob.patch(first, with_("early"))
    await until_order("late", "middle", "early")
    shown = (await cellgate.inspect("/v1/queue"))["items"][0]
    assert "its owner bob swapped it with gang" in shown["explanation"][0]
    assert shown["swap"]["inForce"]

    await cellgate.extender.stop()
    await cellgate.start_extender()
    await until_order("late", "middle", "early")
    await end(plane, pods, "runs", size=2)
    await running(plane, pods, "late", size=2)
    await plane.api.wait_until(
        f"{pods}/early-0",
        lambda pod: "cellgate.io/swapped-place" in pod["metadata"]["annotations"],
    )
    await end(plane, pods, "late", size=2)
    await running(plane, pods, "middle", size=2)
    explained = await cellgate.inspect(f"/v1/explain/{pods.split('/')[4]}/early-0")
    assert "swap" in {row["kind"] for row in explained["decisions"]}


async def test_a_deletion_says_who_cancelled_the_gang_and_why(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    namespace, bob = pods.split("/")[4], plane.api_as("bob")
    await submit_job(plane, pods, "train")
    job = f"/apis/batch/v1/namespaces/{namespace}/jobs/train"
    await plane.api.wait_until(job, lambda one: one.get("status", {}).get("ready") == 2)
    again = to_run_again(await bob.get(job), name="train-2")
    await bob.patch(job, {"metadata": {"annotations": {"cellgate.io/cancel": "wrong data"}}})
    await bob.delete(job, propagationPolicy="Background")
    await bob.create(job.removesuffix("/train"), again)
    await plane.api.wait_until(f"{job}-2", lambda one: one.get("status", {}).get("ready") == 2)
    await bob.delete(f"{job}-2", propagationPolicy="Background")
    for pod in gang_pods("bare", size=2, gpus=8):
        await bob.create(pods, pod)
    reason = {"metadata": {"annotations": {"cellgate.io/cancel": "not needed"}}}
    with pytest.raises(ApiError, match="an admin of its group or a policy admin may change it"):
        await plane.api_as("alice").patch(f"{pods}/bare-0", reason)
    await bob.patch(f"{pods}/bare-0", reason)
    for index in range(2):
        await bob.delete(f"{pods}/bare-{index}")

    found: JsonObject = {}

    async def are_recorded() -> bool:
        runs = (await cellgate.inspect("/v1/runs?user=bob&outcome=deleted"))["items"]
        found.clear()
        found.update({run["gang"]: run.get("reason") for run in runs})
        return found.get(f"{namespace}/bare") is not None and f"{namespace}/train" in found

    await poll_until(are_recorded, deadline_seconds=20, explain=lambda: f"runs: {found}")
    assert found[f"{namespace}/train"] == "its owner bob cancelled it: wrong data"
    assert found[f"{namespace}/bare"] == "its owner bob cancelled it: not needed"
    explained = await cellgate.inspect(f"/v1/explain/{namespace}/train")
    (row,) = [row for row in explained["decisions"] if row["kind"] == "cancel"]
    assert row["details"]["user"] == "bob"


async def test_pods_are_told_while_no_extender_leads(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await create(plane, pods, gang_pods("early", size=1, gpus=8))
    await running(plane, pods, "early", size=1)
    await end(plane, pods, "early", size=1)
    await cellgate.extender.stop()
    await create(plane, pods, gang_pods("silent", size=2, gpus=8))

    async def told() -> list[str]:
        events = await events_of(plane, pods, "Pod", "NoExtenderLeads")
        return sorted(one["involvedObject"]["name"] for one in events)

    async def are_told() -> bool:
        return len(await told()) == 2

    await poll_until(are_told, deadline_seconds=60, explain=lambda: "no Event")
    assert await told() == ["silent-0", "silent-1"]
    await cellgate.start_extender()
    await running(plane, pods, "silent", size=2)
    namespace = pods.split("/")[4]
    explained = await cellgate.inspect(f"/v1/explain/{namespace}/early-0")
    assert (explained["gang"], explained["state"]) == (f"{namespace}/early", "gone")
    assert "placed" in {row["outcome"] for row in explained["decisions"]}
