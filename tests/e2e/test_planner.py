"""Gated gangs, planned ahead of a real kube-scheduler."""

import asyncio
import time
from collections.abc import Sequence

import orjson
import pytest

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import a_gang_pod, create, end, gang_pods, running, told
from tests.support.installed.installation import Installation
from tests.support.installed.policies import delete_policy, promise_nodes, put_policy
from tests.support.kube.pods import PodBuilder, a_new_pod

_START_SECONDS = 8.0
"""Sooner than a gang is tried again without a cause, also while another module runs beside."""


@pytest.fixture(scope="module")
def node_count() -> int:
    return 4


async def test_a_gang_is_planned_whole_and_each_member_goes_where_it_was_told(
    plane: ControlPlane, pods: str
) -> None:
    await create(plane, pods, gang_pods("bert", size=3, gpus=8))
    members = await running(plane, pods, "bert", size=3)
    nodes = [pod["spec"]["nodeName"] for pod in members]
    told = [
        orjson.loads(pod["metadata"]["annotations"][marks.PLACEMENT_ANNOTATION])["node"]
        for pod in members
    ]
    assert nodes == told
    assert len(set(nodes)) == 3


async def test_a_gang_waits_behind_its_gate_until_the_one_before_has_ended(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """A gang that does not fit costs kube-scheduler nothing: it does not even see it."""
    await create(plane, pods, gang_pods("first", size=3, gpus=8))
    await running(plane, pods, "first", size=3)
    await create(plane, pods, gang_pods("next", size=2, gpus=8))
    reason = await told(plane, pods, "next")
    assert "room for 1 of 2 members now" in reason
    waiting = await plane.api.get(f"{pods}/next-0")
    assert waiting["spec"]["schedulingGates"] == [{"name": marks.QUEUED_GATE}]
    (entry,) = await cellgate.waiting()
    gang = f"{pods.split('/')[4]}/next"
    assert (entry["gang"], entry["reason"], entry["wholeGang"]) == (gang, reason, True)
    waiting_gangs = "cellgate_extender_waiting_gangs{"
    assert await cellgate.extender_metric(waiting_gangs) == 1
    await end(plane, pods, "first", size=3)
    await running(plane, pods, "next", size=2)
    assert await cellgate.waiting() == []
    assert await cellgate.extender_metric(waiting_gangs) == 0
    assert "placed on node" in await told(plane, pods, "next", reason="Placed")


async def test_each_member_is_planned_on_a_node_that_it_can_use(
    plane: ControlPlane, pods: str
) -> None:
    nodes = (await plane.api.get("/api/v1/nodes"))["items"]
    names = [node["metadata"]["name"] for node in (nodes[-1], nodes[0])]
    chosen = [{"kubernetes.io/hostname": name} for name in names]
    pair = [a_gang_pod("picky", i, size=2, gpus=1, nodeSelector=chosen[i]) for i in range(2)]
    await create(plane, pods, pair)
    members = await running(plane, pods, "picky", size=2)
    assert [pod["spec"]["nodeName"] for pod in members] == names


async def test_a_gang_is_planned_where_its_volume_is(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    nodes = (await plane.api.get("/api/v1/nodes"))["items"]
    name, namespace = nodes[-1]["metadata"]["name"], pods.split("/")[4]
    await _bind_volume(plane, namespace, node=name)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    refused = "cellgate_extender_refused_nodes_total"
    before = await cellgate.extender_metric(refused)
    await create(plane, pods, [a_gang_pod("local", 0, size=1, gpus=8, volumes=[volume])])
    (pod,) = await running(plane, pods, "local", size=1)
    assert pod["spec"]["nodeName"] == name
    assert await cellgate.extender_metric(refused) == before
    await plane.api.delete(f"/api/v1/persistentvolumes/local-{namespace}")


async def _bind_volume(plane: ControlPlane, namespace: str, *, node: str) -> None:
    """Let a claim have a volume that is on one node, as the controllers of volumes leave both."""
    name, claims = f"local-{namespace}", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    rule = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    volume = {
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}},
    }
    claim = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    marks = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": "data", "annotations": marks}
    bound = await plane.api.create(claims, {"metadata": metadata, "spec": {**common, **claim}})
    reference = {"namespace": namespace, "name": "data", "uid": bound["metadata"]["uid"]}
    spec = {**common, **volume, "claimRef": reference}
    stored = {"metadata": {"name": name}, "spec": spec}
    await plane.api.create("/api/v1/persistentvolumes", stored)
    await plane.api.patch(f"{claims}/data/status", {"status": {"phase": "Bound"}})


async def test_a_restarted_extender_goes_on_with_gangs_behind_their_gates(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await create(plane, pods, gang_pods("first", size=4, gpus=8))
    await running(plane, pods, "first", size=4)
    await create(plane, pods, gang_pods("next", size=4, gpus=8))
    await cellgate.extender.stop()
    await cellgate.start_extender()
    await end(plane, pods, "first", size=4)
    await running(plane, pods, "next", size=4)


async def test_a_node_is_not_kept_free_for_a_pod_that_a_leader_nominated_and_did_not_release(
    plane: ControlPlane, pods: str
) -> None:
    """kube-scheduler believes a nomination, even that of a pod which a gate holds."""
    await create(plane, pods, [a_gang_pod("torn", 0, size=2, gpus=8)])
    node = (await plane.api.get("/api/v1/nodes"))["items"][0]["metadata"]["name"]
    await plane.api.patch(f"{pods}/torn-0/status", {"status": {"nominatedNodeName": node}})
    await create(plane, pods, gang_pods("whole", size=4, gpus=8))
    await running(plane, pods, "whole", size=4)
    torn = await plane.api.get(f"{pods}/torn-0")
    assert "nominatedNodeName" not in torn["status"]


async def test_pods_that_may_not_preempt_do_not_keep_each_other_off_a_node(
    plane: ControlPlane, pods: str
) -> None:
    """There is CPU for one of them; kube-scheduler would keep the node free for the others."""
    for index in range(4):
        await create(plane, pods, gang_pods(f"fill{index}", size=1, gpus=8))
        await running(plane, pods, f"fill{index}", size=1)
    names = [f"heavy{index}" for index in range(4)]
    await create(plane, pods, [_heavy(name) for name in names])
    await told(plane, pods, names[-1])
    await end(plane, pods, "fill0", size=1)

    async def bound() -> list[str]:
        items = (await plane.api.get(pods))["items"]
        named = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in items}
        return [name for name in names if named[f"{name}-0"]]

    first = await poll_until(bound, deadline_seconds=15, explain=lambda: "no pod is bound")
    assert len(first) == 1


def _heavy(name: str) -> JsonObject:
    """A pod of a class that may not preempt, with more than half of the CPU of a node."""
    pod = a_gang_pod(name, 0, size=1, gpus=1, priorityClassName="oppo")
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100"}
    return pod


async def test_a_gang_waits_whole_for_cpu_that_other_pods_hold(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """Three of four nodes have leaf cells and no CPU: no member is bound before all can be."""
    names = [node["metadata"]["name"] for node in (await plane.api.get("/api/v1/nodes"))["items"]]
    await _fill_cpu(plane, pods, names[1:])
    await create(plane, pods, [_needing_cpu("cpu", index, size=2) for index in range(2)])
    reason = await told(plane, pods, "cpu")
    assert "needs 2 x 8 leaf cells and 64 CPUs for each member" in reason
    assert "3 of the 4 nodes that it may use lack cpu" in reason
    assert "with 28 CPUs free of 128 CPUs" in reason
    (entry,) = await cellgate.waiting()
    assert (entry["code"], entry["reason"]) == ("lacks-resources", reason)
    assert not any([await _is_released(plane, pods, f"cpu-{index}") for index in range(2)])
    await plane.api.delete(f"{pods}/web-{names[1]}", gracePeriodSeconds="0")
    members = await _running_within(plane, pods, "cpu", size=2, seconds=_START_SECONDS)
    assert {pod["spec"]["nodeName"] for pod in members} == set(names[:2])


async def test_a_large_gang_finds_the_one_rack_in_ten_that_has_cpu(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    names = await plane.add_nodes(
        160, NodeShape(gpus=8, nodes_per_rack=16, labels={"batch": "rack"}), prefix="rack"
    )
    try:
        await _fill_cpu(plane, pods, names)
        members = [_needing_cpu("large", index, size=16) for index in range(16)]
        for member in members:
            member["spec"]["nodeSelector"] = {"batch": "rack"}
        await create(plane, pods, members)
        assert "160 of the 160 nodes that it may use lack cpu" in await told(plane, pods, "large")
        rack = names[48:64]
        await asyncio.gather(
            *(plane.api.delete(f"{pods}/web-{name}", gracePeriodSeconds="0") for name in rack)
        )
        started = await _running_within(plane, pods, "large", size=16, seconds=_START_SECONDS)
        assert {pod["spec"]["nodeName"] for pod in started} == set(rack)
        assert await cellgate.extender_metric("cellgate_extender_refused_nodes_total") == 0
    finally:
        await plane.delete_nodes(names)


async def _fill_cpu(plane: ControlPlane, pods: str, nodes: Sequence[str]) -> None:
    """Let a pod without leaf cells use 100 of the 128 CPUs of each of these nodes."""
    fillers = [
        a_new_pod(f"web-{node}").with_cpu("100").ending_at_once().with_spec(nodeName=node)
        for node in nodes
    ]
    await asyncio.gather(*(plane.api.create(pods, pod) for pod in fillers))


def _needing_cpu(gang: str, index: int, *, size: int) -> JsonObject:
    pod = a_gang_pod(gang, index, size=size, gpus=8)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "64"}
    return pod


async def _is_released(plane: ControlPlane, pods: str, name: str) -> bool:
    pod = await plane.api.get(f"{pods}/{name}")
    return not pod["spec"].get("schedulingGates")


async def _running_within(
    plane: ControlPlane, pods: str, gang: str, *, size: int, seconds: float
) -> list[JsonObject]:
    began = time.monotonic()
    members = await running(plane, pods, gang, size=size)
    assert time.monotonic() - began < seconds
    return members


async def test_no_member_is_bound_before_all_pass_the_checks_of_kube_scheduler(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """The planner does not know the rule by which kube-scheduler refuses one of the two nodes."""
    for index in range(2):
        await create(plane, pods, gang_pods(f"fill{index}", size=1, gpus=8))
        await running(plane, pods, f"fill{index}", size=1)
    taken = {pod["spec"]["nodeName"] for pod in (await plane.api.get(pods))["items"]}
    nodes = (await plane.api.get("/api/v1/nodes"))["items"]
    crowded = next(name for node in nodes if (name := node["metadata"]["name"]) not in taken)
    crowd = [_labelled(f"crowd-{index}", app="crowd") for index in range(2)]
    for one in crowd:
        await plane.api.create(pods, one.with_spec(nodeName=crowded).ending_at_once())
    apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname"}
    rule = {"labelSelector": {"matchLabels": {"app": "crowd"}}}
    spread = [{**apart, **rule, "whenUnsatisfiable": "DoNotSchedule"}]
    spec = {"topologySpreadConstraints": spread}
    await create(
        plane, pods, [a_gang_pod("whole", index, size=2, gpus=8, **spec) for index in range(2)]
    )
    given_up = 'cellgate_extender_bindings_given_up_total{cause="refused"}'
    await poll_until(
        lambda: cellgate.extender_metric(given_up),
        deadline_seconds=15,
        explain=lambda: "no binding was held and given up",
    )
    members = [await plane.api.get(f"{pods}/whole-{index}") for index in range(2)]
    assert [pod["spec"].get("nodeName") for pod in members] == [None, None]
    began = time.monotonic()
    for one in crowd:
        await plane.api.delete(f"{pods}/{one['metadata']['name']}")
    await running(plane, pods, "whole", size=2)
    assert time.monotonic() - began < _START_SECONDS


def _labelled(name: str, **labels: str) -> PodBuilder:
    pod = a_new_pod(name)
    pod["metadata"]["labels"] = labels
    return pod


async def test_a_pod_without_leaf_cells_may_use_our_kube_scheduler(
    plane: ControlPlane, pods: str
) -> None:
    pod = a_new_pod("web-0").with_spec(schedulerName=marks.SCHEDULER_NAME).ending_at_once()
    await create(plane, pods, [pod])
    (runs,) = await running(plane, pods, "web", size=1)
    assert marks.PLACEMENT_ANNOTATION not in runs["metadata"].get("annotations", {})


async def test_a_launcher_without_devices_waits_for_its_gang_and_starts_with_it(
    plane: ControlPlane, pods: str
) -> None:
    """It is created first, carries the labels of its gang, and kube-scheduler chooses its node."""
    await create(plane, pods, gang_pods("first", size=3, gpus=8))
    await running(plane, pods, "first", size=3)
    launcher = a_new_pod("mpi-0").in_gang("mpi", size=3).of_class("test").ending_at_once()
    await create(plane, pods, [launcher])
    workers = [a_gang_pod("mpi", index, size=3, gpus=8) for index in (1, 2)]
    await create(plane, pods, workers)
    assert "room for 1 of 2 members now" in await told(plane, pods, "mpi")
    stored = await plane.api.get(f"{pods}/mpi-0")
    assert stored["spec"]["schedulingGates"] == [{"name": marks.QUEUED_GATE}]
    await end(plane, pods, "first", size=3)
    members = await running(plane, pods, "mpi", size=3)
    assert marks.PLACEMENT_ANNOTATION not in members[0]["metadata"]["annotations"]
    assert {pod["spec"]["priorityClassName"] for pod in members} == {"test"}


async def test_no_worker_is_bound_before_its_launcher_can_be(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    nowhere = {"nodeSelector": {"example.com/launchers": "true"}}
    launcher = a_new_pod("mpi-0").in_gang("mpi", size=3).of_class("test").with_spec(**nowhere)
    await create(plane, pods, [launcher.ending_at_once()])
    await create(plane, pods, [a_gang_pod("mpi", index, size=3, gpus=8) for index in (1, 2)])
    given_up = "cellgate_extender_bindings_given_up_total"
    before = await cellgate.extender_metric(given_up)

    async def is_given_up() -> bool:
        return await cellgate.extender_metric(given_up) > before

    await poll_until(is_given_up, deadline_seconds=20, explain=lambda: "not given up")
    found = (await plane.api.get(pods))["items"]
    assert [pod["spec"].get("nodeName") for pod in found] == [None] * 3
    node = (await plane.api.get("/api/v1/nodes"))["items"][0]["metadata"]["name"]
    label = {"metadata": {"labels": {"example.com/launchers": "true"}}}
    await plane.api.patch(f"/api/v1/nodes/{node}", label)
    await running(plane, pods, "mpi", size=3)


async def test_a_gang_over_quota_waits_uncharged_and_starts_when_there_is_room(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    quotas = "groups:\n- {name: g, limits: {leafCells: 8}, over: queue, users: [{name: bob}]}\n"
    await put_policy(plane, "quotas", quotas)
    await asyncio.sleep(2)  # in force on every replica by then
    await create(plane, pods, gang_pods("first", size=1, gpus=8))
    await running(plane, pods, "first", size=1)
    await create(plane, pods, gang_pods("next", size=1, gpus=8))
    waiting = await plane.api.get(f"{pods}/next-0")
    assert waiting["metadata"]["annotations"][marks.UNCHARGED_ANNOTATION] == "true"
    await asyncio.sleep(2)  # room is there, three nodes of it; only quota is not
    waiting = await plane.api.get(f"{pods}/next-0")
    assert waiting["spec"]["schedulingGates"] == [{"name": marks.QUEUED_GATE}]
    (entry,) = await cellgate.waiting()
    assert (entry["code"], entry["pod"].split("/")[1]) == ("quota", "next-0")
    assert "waits for quota of group g" in await told(plane, pods, "next", reason="Waiting")
    await end(plane, pods, "first", size=1)
    await running(plane, pods, "next", size=1)
    await delete_policy(plane, "quotas")


async def test_quotas_count_members_that_are_created_later_from_the_start(
    plane: ControlPlane, pods: str
) -> None:
    """Their cells are leased: their user must not get others for nothing meanwhile."""
    quotas = "groups:\n- {name: g, limits: {leafCells: 10}, over: fail, users: [{name: bob}]}\n"
    await put_policy(plane, "quotas", quotas)
    await asyncio.sleep(2)  # in force on every replica by then
    leader = a_gang_pod("serve", 0, size=2, gpus=1).annotated(marks.LATE_ANNOTATION, "1x8")
    await create(plane, pods, [leader])
    await running(plane, pods, "serve", size=1)
    with pytest.raises(ApiError, match="holds 9 leaf cells and 2 more are"):
        await create(plane, pods, gang_pods("other", size=1, gpus=2))
    worker = a_gang_pod("serve", 1, size=2, gpus=8).annotated(marks.LATE_ANNOTATION, "1x8")
    await create(plane, pods, [worker])
    await running(plane, pods, "serve", size=2)
    await create(plane, pods, gang_pods("other", size=1, gpus=1))
    await delete_policy(plane, "quotas")


async def test_a_planned_preemption_is_counted_and_a_planned_downgrade_is_announced(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """The last one here: a Cluster document cannot be deleted while gangs run."""
    await promise_nodes(plane, 1)
    await asyncio.sleep(2)  # in force by then
    lazy = "{virtualCluster: default, priority: 10, leafCellNumber: 8, lazyPreemptionEnable: true}"
    low = a_gang_pod("low", 0, size=1, gpus=8)
    low["metadata"] = {"name": "low-0", "annotations": {marks.HIVED_SPEC_ANNOTATION: lazy}}
    await create(plane, pods, [low])
    await running(plane, pods, "low", size=1)
    high = a_gang_pod("high", 0, size=1, gpus=8, priorityClassName="prod")
    await plane.api.create(pods, high)  # the example rules lower bob's class
    await running(plane, pods, "high", size=1)
    namespace = pods.split("/")[4]
    downgraded = await told(plane, pods, "low", reason="Downgraded")
    assert f"gang {namespace}/high has a higher priority" in downgraded

    await end(plane, pods, "high", size=1)
    for index in range(3):
        fill = a_gang_pod(f"fill{index}", 0, size=1, gpus=8, priorityClassName="oppo")
        await create(plane, pods, [fill])
        await running(plane, pods, f"fill{index}", size=1)
    counted = 'cellgate_extender_preemptions_total{by="cellgate",cause="borrowed"}'
    before = await cellgate.extender_metric(counted)
    await create(plane, pods, gang_pods("next", size=1, gpus=8))
    await running(plane, pods, "next", size=1)
    assert await cellgate.extender_metric(counted) == before + 1
