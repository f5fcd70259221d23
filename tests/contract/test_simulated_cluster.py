"""The simulated cluster as a whole: people, API server, scheduler, kubelets, over HTTP."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml
from aiohttp import web

from simulation.cluster import SimulatedCluster
from simulation.objects.fields import Object
from simulation.objects.identity import User
from simulation.objects.resources import PODS
from simulation.users import SimulatedGang, Users, plan_gangs
from tests.contract.kube import MERGE_PATCH, Kube, a_binding, unscheduled_pod

Run = Callable[[Coroutine[Any, Any, None]], None]


class ExtenderStub:
    """Lets every node pass and binds, with an annotation, through the API."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.filtered: list[Object] = []

    async def filter(self, request: web.Request) -> web.Response:
        arguments: Object = orjson.loads(await request.read())
        self.filtered.append(arguments)
        return web.json_response({"NodeNames": arguments["NodeNames"], "Error": ""})

    async def prioritize(self, request: web.Request) -> web.Response:
        arguments = orjson.loads(await request.read())
        scores = [{"Host": name, "Score": 1} for name in arguments["NodeNames"]]
        return web.json_response(scores)

    async def bind(self, request: web.Request) -> web.Response:
        asked = orjson.loads(await request.read())
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        binding = a_binding(
            asked["PodName"], asked["Node"], uid=asked["PodUID"], annotations={"x/placed": "yes"}
        )
        async with aiohttp.ClientSession(base_url=self._cluster.url) as session:
            answer = await Kube(session).send("POST", path, binding)
        return web.json_response({"Error": "" if answer.status == 201 else str(answer)})


@pytest.fixture
async def cluster() -> AsyncIterator[SimulatedCluster]:
    cluster = SimulatedCluster(nodes=4, racks=2, seed=7, policies={"rules": "rules: []"})
    await cluster.serve()
    yield cluster
    await cluster.close()


@pytest.fixture
async def kube(cluster: SimulatedCluster) -> AsyncIterator[Kube]:
    async with aiohttp.ClientSession(base_url=cluster.url) as session:
        yield Kube(session)


@pytest.fixture
async def extender(cluster: SimulatedCluster) -> ExtenderStub:
    return ExtenderStub(cluster)


@pytest.fixture
async def extender_url(extender: ExtenderStub) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/extender/filter", extender.filter)
    app.router.add_post("/v1/extender/prioritize", extender.prioritize)
    app.router.add_post("/v1/extender/bind", extender.bind)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/extender"
    await runner.cleanup()


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    """Run a coroutine until the test ends; it must not have ended by itself."""
    tasks: list[asyncio.Task[None]] = []
    yield lambda coroutine: tasks.append(asyncio.create_task(coroutine))
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends


async def test_people_keep_the_cluster_busy_and_within_bounds(
    cluster: SimulatedCluster, extender: ExtenderStub, extender_url: str, run: Run
) -> None:
    run(cluster.run_scheduler(extender_url))
    run(cluster.run_kubelet())
    run(cluster.run_users())

    def is_busy() -> bool:
        phases = [pod["status"]["phase"] for pod in cluster.store.list(PODS)]
        return phases.count("Running") >= 4

    await _until(is_busy)
    pod = next(pod for pod in cluster.store.list(PODS) if pod["status"]["phase"] == "Running")
    assert pod["metadata"]["annotations"]["x/placed"] == "yes"
    assert pod["spec"]["nodeName"].startswith("node-")
    assert len(cluster.store.list(PODS)) <= 60
    assert set(extender.filtered[0]) == {"Pod", "Nodes", "NodeNames"}
    assert extender.filtered[0]["Nodes"] is None
    assert set(extender.filtered[0]["Pod"]) == {"metadata", "spec", "status"}


async def test_gang_that_is_refused_in_part_is_taken_back(
    cluster: SimulatedCluster, kube: Kube
) -> None:
    gang = _gang(members=2)
    pods = f"/api/v1/namespaces/{gang.submitter.namespace}/pods"
    await kube.create(pods, unscheduled_pod(f"{gang.name}-1"))
    async with aiohttp.ClientSession() as session:
        assert not await _users(cluster, session).submit(gang)
    assert await kube.names(pods) == [f"{gang.name}-1"]


async def test_person_who_has_waited_too_long_takes_the_gang_back(
    cluster: SimulatedCluster, kube: Kube
) -> None:
    old, new = _gang(members=1), _gang(members=2)
    async with aiohttp.ClientSession() as session:
        await _users(cluster, session).run(iter([old]))
        assert len(await kube.names("/api/v1/pods")) == 1
        await _users(cluster, session, now=lambda: time.time() + 300).run(iter([new]))
    assert await kube.names("/api/v1/pods") == [f"{new.name}-0", f"{new.name}-1"]


async def test_lifted_gate_lets_a_pod_be_scheduled(
    cluster: SimulatedCluster, kube: Kube, extender_url: str, run: Run
) -> None:
    run(cluster.run_scheduler(extender_url))
    run(cluster.run_kubelet())
    pods = "/api/v1/namespaces/lab/pods"
    gates = [{"name": "cellgate.io/queued"}]
    spec = {"schedulerName": "cellgate-scheduler", "schedulingGates": gates}
    await kube.create(pods, unscheduled_pod("a", leaf_count=8, **spec))
    await kube.patch(f"{pods}/a/status", {"status": {"nominatedNodeName": "node-03"}})
    patch = {"spec": {"schedulingGates": None}}
    assert (await kube.patch(f"{pods}/a", patch, content_type=MERGE_PATCH)).status == 200
    await _until(lambda: cluster.store.get(PODS, ("lab", "a"))["status"]["phase"] == "Running")
    assert cluster.store.get(PODS, ("lab", "a"))["spec"]["nodeName"] == "node-03"


async def test_pod_waits_while_the_extender_is_away(
    cluster: SimulatedCluster, kube: Kube, run: Run
) -> None:
    run(cluster.run_scheduler("http://127.0.0.1:1/v1/extender"))
    pods = "/api/v1/namespaces/lab/pods"
    await kube.create(pods, unscheduled_pod("a", leaf_count=1, schedulerName="cellgate-scheduler"))
    await kube.create(pods, unscheduled_pod("other", schedulerName="default-scheduler"))

    def are_settled() -> bool:
        waiting = cluster.store.get(PODS, ("lab", "a"))["status"].get("conditions") or [{}]
        other = cluster.store.get(PODS, ("lab", "other"))
        return waiting[0].get("reason") == "SchedulerError" and "nodeName" in other["spec"]

    await _until(are_settled)


async def test_nodes_policies_and_namespaces_are_there(kube: Kube) -> None:
    nodes = (await kube.get("/api/v1/nodes"))["items"]
    assert [_labels(node)["topology.kubernetes.io/rack"] for node in nodes] == [
        "rack-0",
        "rack-0",
        "rack-1",
        "rack-1",
    ]
    assert nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    path = "/api/v1/namespaces/cellgate-system/configmaps"
    (policy,) = (await kube.get(path, labelSelector="cellgate.io/policy"))["items"]
    assert policy["data"] == {"policy.yaml": "rules: []"}
    assert await kube.names("/api/v1/namespaces", labelSelector="cellgate.io/vc") == [
        "lab",
        "speech",
        "vision",
    ]


async def test_kubeconfig_lets_a_user_in_and_others_out(
    cluster: SimulatedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    cluster.save_kubeconfig(path, User(name="erin", groups=("ops",)))
    config = yaml.safe_load(path.read_text())
    token = config["users"][0]["user"]["token"]
    assert config["clusters"][0]["cluster"]["server"] == cluster.url
    async with aiohttp.ClientSession(base_url=cluster.url) as session:
        known = Kube(session, {"Authorization": f"Bearer {token}"})
        assert (await known.send("GET", "/api/v1/nodes")).status == 200
        unknown = Kube(session, {"Authorization": "Bearer nobody"})
        assert (await unknown.send("GET", "/api/v1/nodes")).refusal == (401, "Unauthorized")


@pytest.mark.parametrize(
    ("method", "path", "body", "query"),
    [
        (
            "DELETE",
            "/api/v1/namespaces/cellgate-system/configmaps/cellgate-rules",
            None,
            {"dryRun": "All"},
        ),
        ("DELETE", "/api/v1/namespaces/lab", None, {}),
        (
            "POST",
            "/api/v1/namespaces/lab/configmaps",
            {"metadata": {"name": "a", "finalizers": ["x/y"]}},
            {},
        ),
    ],
    ids=["dry run of a deletion", "namespace deletion", "finalizers"],
)
async def test_what_is_not_simulated_is_refused(
    kube: Kube, *, method: str, path: str, body: object, query: Mapping[str, str]
) -> None:
    answer = await kube.send(method, path, body, **query)
    assert answer.refusal == (501, "NotImplemented")


async def test_taken_port_leaves_nothing_open(cluster: SimulatedCluster) -> None:
    port = int(cluster.url.rpartition(":")[2])
    second = SimulatedCluster(nodes=1)
    with pytest.raises(OSError, match="address already in use"):
        await second.serve(port=port)


async def test_close_ends_a_watch_at_once(kube: Kube, cluster: SimulatedCluster) -> None:
    watching = asyncio.create_task(kube.watch("/api/v1/nodes", count=100, timeoutSeconds="60"))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(3):
        await cluster.close()
        assert len(await watching) == 4


def _gang(*, members: int) -> SimulatedGang:
    gangs = plan_gangs(random.Random(0), leaf_per_node=8, leaf_total=32)
    return next(gang for gang in gangs if gang.members == members)


def _users(
    cluster: SimulatedCluster,
    session: aiohttp.ClientSession,
    *,
    now: Callable[[], float] = time.time,
) -> Users:
    async def no_sleep(_: float) -> None:
        return

    return Users(
        cluster.url, session, tokens=cluster.tokens, leaf_total=32, now=now, sleep=no_sleep
    )


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.05)


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"]["labels"]
    return labels
