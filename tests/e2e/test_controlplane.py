"""The test control plane does what the other end-to-end tests take for granted."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.controlplane import cluster, ports
from tests.controlplane.api import Api, ApiError, Condition, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.identity import User
from tests.controlplane.nodes import NodeShape
from tests.controlplane.readiness import StartError
from tests.controlplane.waiting import poll_until
from tests.e2e.control_planes import Kubectl, StartControlPlane
from tests.support.kube.pods import PodBuilder, a_new_pod

READY_BUDGET_SECONDS = 40
NODE_COUNT = 6
SMALL = ControlPlaneOptions(scheduler=False, kwok=False)

# Starts a control plane, names its processes and its folder, and waits to be killed.
VICTIM = """
import asyncio, json
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane

async def main():
    async with ControlPlane(find_or_build()) as plane:
        pids = [process.pid for process in plane.processes]
        print(json.dumps({"pids": pids, "directory": str(plane.directory)}), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gpu_nodes(control_plane: ControlPlane) -> AsyncIterator[list[str]]:
    """Six nodes of four GPUs, two to a rack."""
    shape = NodeShape(gpus=4, nodes_per_rack=2)
    names = await control_plane.add_nodes(NODE_COUNT, shape, prefix="plane")
    yield names
    await control_plane.delete_nodes(names)


def a_gpu_pod(name: str, *, gpus: int = 1, **annotations: str) -> PodBuilder:
    """A pod with GPUs; annotations are those of kwok.yaml, with underscores."""
    pod = a_new_pod(name).with_gpus(gpus).with_spec(restartPolicy="Never")
    for key, text in annotations.items():
        pod = pod.annotated(f"test.cellgate.io/{key.replace('_', '-')}", text)
    return pod


def in_phase(phase: str) -> Condition:
    """The condition that a pod is in that phase."""
    return lambda pod: bool(pod["status"].get("phase") == phase)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that ended and was not reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


async def until_dead(pids: list[int]) -> None:
    """Wait a moment for processes to be gone."""

    async def are_dead() -> bool:
        return not any(is_alive(pid) for pid in pids)

    await poll_until(are_dead, deadline_seconds=5, explain=lambda: f"some of {pids} live on")


async def test_the_version_asked_for_is_served_within_the_budget(
    control_plane: ControlPlane, kubectl: Kubectl, binaries: Binaries
) -> None:
    asked = "v" + (os.environ.get("KUBERNETES") or "1.37.1").removeprefix("v")
    assert control_plane.ready_seconds < READY_BUDGET_SECONDS
    assert f"v{binaries.version}" == asked
    versions = json.loads((await kubectl("version", "--output=json")).stdout)
    assert versions["serverVersion"]["gitVersion"] == asked
    assert versions["clientVersion"]["gitVersion"] == asked


async def test_nodes_carry_topology_labels_and_gpus(api: Api, gpu_nodes: list[str]) -> None:
    assert gpu_nodes == [f"plane-{number}" for number in range(NODE_COUNT)]
    node = await api.get("/api/v1/nodes/plane-5")
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "plane-5",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/rack": "rack-2",
        "topology.kubernetes.io/zone": "zone-1",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "4",
    }
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert "taints" not in node["spec"]


async def test_a_node_that_turns_unready_is_made_ready_again(
    api: Api, gpu_nodes: list[str]
) -> None:
    path = f"/api/v1/nodes/{gpu_nodes[0]}"
    not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    def is_ready(node: JsonObject) -> bool:
        return bool(node["status"]["conditions"][0]["status"] == "True")

    hold = {"metadata": {"annotations": {"test.cellgate.io/hold": "true"}}}
    await api.patch(path, hold)
    await api.patch(f"{path}/status", not_ready, kind="strategic")
    with pytest.raises(TimeoutError, match="not as expected"):
        await api.wait_until(path, is_ready, deadline_seconds=1)
    await api.patch(path, {"metadata": {"annotations": None}})
    await api.wait_until(path, is_ready)


async def test_a_pod_is_scheduled_runs_for_its_time_and_succeeds(
    control_plane: ControlPlane, namespace: str, gpu_nodes: list[str]
) -> None:
    alice = control_plane.api_as("alice")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await alice.create(pods, a_gpu_pod("short", gpus=3, run_for="2s"))
    running = await alice.wait_until(f"{pods}/short", in_phase("Running"))
    assert running["spec"]["nodeName"] in gpu_nodes
    assert running["spec"]["schedulerName"] == "default-scheduler"
    started = asyncio.get_running_loop().time()
    done = await alice.wait_until(f"{pods}/short", in_phase("Succeeded"))
    assert 1 < asyncio.get_running_loop().time() - started < 10
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_pod_that_fits_nowhere_stays_pending(
    api: Api, namespace: str, gpu_nodes: list[str]
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(pods, a_gpu_pod("large", gpus=5))

    def is_unschedulable(pod: JsonObject) -> bool:
        conditions = pod["status"].get("conditions", [])
        return any(condition.get("reason") == "Unschedulable" for condition in conditions)

    pod = await api.wait_until(f"{pods}/large", is_unschedulable)
    assert pod["status"]["phase"] == "Pending"
    assert f"{len(gpu_nodes)} Insufficient nvidia.com/gpu" in str(pod["status"]["conditions"])


async def test_deletion_of_a_bound_pod_finishes(
    api: Api, namespace: str, gpu_nodes: list[str]
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for pod in (a_gpu_pod("quick"), a_gpu_pod("slow", stop_for="2s")):
        await api.create(pods, pod)
    for name in ("quick", "slow"):
        await api.wait_until(f"{pods}/{name}", in_phase("Running"))
        await api.delete(f"{pods}/{name}")
    await api.wait_gone(f"{pods}/quick", deadline_seconds=10)
    assert "deletionTimestamp" in (await api.get(f"{pods}/slow"))["metadata"]
    await api.wait_gone(f"{pods}/slow", deadline_seconds=10)


async def test_a_users_job_completes(
    control_plane: ControlPlane, namespace: str, gpu_nodes: list[str]
) -> None:
    pod = a_gpu_pod("unused", run_for="1s")
    marks = {"annotations": pod["metadata"]["annotations"]}
    template = {"metadata": marks, "spec": pod["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {"completions": 2, "parallelism": 2, "template": template},
    }
    await control_plane.kubectl("apply", "-f", "-", user="alice", stdin=json.dumps(job))
    done = await control_plane.api.wait_until(
        f"/apis/batch/v1/namespaces/{namespace}/jobs/train",
        lambda job: job["status"].get("succeeded") == 2,
    )
    assert done["status"]["ready"] == 0
    pods = await control_plane.api.list(f"/api/v1/namespaces/{namespace}/pods")
    assert [pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods] == ["Job", "Job"]


async def test_users_have_their_groups_and_only_a_users_rights(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    whoami = await kubectl("auth", "whoami", "--output=json", user="alice")
    assert json.loads(whoami.stdout)["status"]["userInfo"]["username"] == "alice"
    assert json.loads(whoami.stdout)["status"]["userInfo"]["groups"] == [
        "team-a",
        "system:authenticated",
    ]
    with pytest.raises(ApiError, match="cannot create resource") as refusal:
        await control_plane.api_as("alice").create("/api/v1/nodes", {"metadata": {"name": "x"}})
    assert refusal.value.status == 403
    refused = await kubectl("delete", "node", "none", user="alice", check=False)
    assert refused.returncode == 1
    assert "Forbidden" in refused.stderr


async def test_a_service_account_gets_a_token_of_its_own(
    control_plane: ControlPlane, api: Api, namespace: str
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "extender"}})
    token = await control_plane.service_account_token(namespace, "extender")
    review = await control_plane.api_with_token(token).create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    username = f"system:serviceaccount:{namespace}:extender"
    assert review["status"]["userInfo"]["username"] == username


async def test_a_second_scheduler_serves_its_own_profile(
    control_plane: ControlPlane, api: Api, namespace: str, gpu_nodes: list[str]
) -> None:
    config = {"profiles": [{"schedulerName": "second"}]}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = a_gpu_pod("theirs")
    pod["spec"]["schedulerName"] = "second"
    await api.create(pods, pod)
    scheduler = control_plane.start_scheduler(config, name="second-scheduler")
    bound = await api.wait_until(f"{pods}/theirs", in_phase("Running"))
    assert bound["spec"]["nodeName"] in gpu_nodes
    await scheduler.stop()


async def test_extra_flags_and_users_reach_a_control_plane_of_ones_own(
    start_control_plane: StartControlPlane,
) -> None:
    options = ControlPlaneOptions(
        users=(User("carol", ("team-c", "leads")),),
        apiserver_flags=("--feature-gates=GenericWorkload=true",),
        scheduler=False,
        kwok=False,
    )
    plane = await start_control_plane(options)
    metrics = (await plane.api.get("/metrics"))["text"]
    assert re.search(r'kubernetes_feature_enabled\{name="GenericWorkload",.*\} 1', metrics)
    assert await plane.api_as("carol").list("/api/v1/nodes") == []


async def test_a_killed_api_server_comes_back_and_the_forwarder_follows(
    start_control_plane: StartControlPlane,
) -> None:
    plane = await start_control_plane(SMALL)
    await plane.add_nodes(1)
    backend = Backend(plane.layout.apiserver_port, f"{plane.server}/readyz")
    async with Forwarder([backend]) as service, aiohttp.ClientSession() as client:
        url = f"https://127.0.0.1:{service.port}/version"
        async with client.get(url, ssl=False) as response:
            assert response.status == 200
        plane.processes.named("kube-apiserver").kill()
        await service.wait_ready(0)
        with pytest.raises(aiohttp.ClientError):
            await client.get(url, ssl=False)
        await plane.processes.named("kube-apiserver").restart()
        await service.wait_ready(1, deadline_seconds=30)
        async with client.get(url, ssl=False) as response:
            assert response.status == 200
    assert len(await plane.api.list("/api/v1/nodes")) == 1


async def test_a_port_that_somebody_else_takes_is_replaced(
    start_control_plane: StartControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody_else:
        taken = somebody_else.getsockname()[1]
        draws = [[*ports.free_ports(2), taken], [taken, *ports.free_ports(2)], ports.free_ports(3)]
        monkeypatch.setattr(cluster, "free_ports", lambda count: draws.pop(0))
        plane = await start_control_plane(SMALL)
    assert draws == []
    assert [process.is_running() for process in plane.processes] == [True, True, True]


def test_processes_of_a_parallel_run_draw_from_shares_that_do_not_overlap() -> None:
    shares = [ports.share_of(f"gw{number}") for number in range(4)]
    assert len({port for share in shares for port in share}) == sum(map(len, shares))


async def test_a_component_that_does_not_start_says_why(binaries: Binaries) -> None:
    options = ControlPlaneOptions(apiserver_flags=("--no-such-flag",))
    with pytest.raises(StartError, match=r"kube-apiserver ended with code 1(.|\n)*no-such-flag"):
        async with ControlPlane(binaries, options):
            pass


async def test_stop_ends_exactly_what_was_started(binaries: Binaries) -> None:
    async with ControlPlane(binaries, SMALL) as plane:
        pids = [process.pid for process in plane.processes]
        assert [process.name for process in plane.processes] == [
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
        ]
        assert all(is_alive(pid) for pid in pids)
    assert not any(is_alive(pid) for pid in pids)
    assert not plane.directory.exists()


async def test_nothing_outlives_a_test_run_that_is_killed(binaries: Binaries) -> None:
    victim = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        VICTIM,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert victim.stdout is not None
        async with asyncio.timeout(60):
            started = json.loads(await victim.stdout.readline())
    finally:
        victim.send_signal(signal.SIGKILL)
        await victim.wait()
    assert len(started["pids"]) == 5
    await until_dead(started["pids"])
    shutil.rmtree(started["directory"])
