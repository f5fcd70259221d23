"""The experiments of a course that teaches HiveD, on a real API server and kube-scheduler.

Two machines with one device each. First each of two VCs owns one of them; then the VC `default`
owns both. One kube-scheduler serves all VCs, where HiveD needs one for each.
"""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from kube import marks
from state.embedded import EmbeddedPostgres
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape, build_node, create_nodes
from tests.controlplane.waiting import poll_until
from tests.e2e.control_planes import run_control_plane
from tests.support.installed.extender_only import ExtenderOnly, an_openpai_pod

CAROL, DAN = "hostname-carol", "hostname-dan"
PODS = "/api/v1/namespaces/default/pods"


def _pool(name: str, *nodes: str) -> tuple[JsonObject, JsonObject]:
    types = {
        f"{name}-NODE": {"childCellType": name, "childCellNumber": 1, "isNodeLevel": True},
        f"{name}-NODE-POOL": {"childCellType": f"{name}-NODE", "childCellNumber": len(nodes)},
    }
    children = [{"cellAddress": node} for node in nodes]
    return types, {"cellType": f"{name}-NODE-POOL", "cellChildren": children}


def _cluster(*pools: tuple[JsonObject, JsonObject], **vcs: tuple[str, int]) -> JsonObject:
    return {
        "physicalCluster": {
            "skuTypes": {"GPU": {"gpu": 1, "cpu": 2, "memory": "4096Mi"}},
            "cellTypes": {key: value for types, _ in pools for key, value in types.items()},
            "physicalCells": [cells for _, cells in pools],
        },
        "virtualClusters": {
            vc: {
                "virtualCells": [
                    {"cellType": f"{pool}-NODE-POOL.{pool}-NODE", "cellNumber": number}
                ]
            }
            for vc, (pool, number) in vcs.items()
        },
    }


ONE_EACH = _cluster(
    _pool("GPU-C", CAROL), _pool("GPU-D", DAN), default=("GPU-C", 1), vc1=("GPU-D", 1)
)
BOTH_FOR_DEFAULT = _cluster(_pool("GPU", CAROL, DAN), default=("GPU", 2))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(request: pytest.FixtureRequest, binaries: Binaries) -> AsyncIterator[ControlPlane]:
    """A control plane with the lab's two machines."""
    options = ControlPlaneOptions(scheduler=False)
    async with run_control_plane(request, binaries, options) as plane:
        built = [build_node(0, NodeShape(gpus=1)), build_node(1, NodeShape(gpus=1))]
        for node, name in zip(built, (CAROL, DAN), strict=True):
            node["metadata"]["name"] = name
        await create_nodes(plane.api, built)
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def extender_only(plane: ControlPlane) -> AsyncIterator[ExtenderOnly]:
    """Extender and scheduler, with the lab's first configuration."""
    async with (
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
    ):
        extender_only = ExtenderOnly(plane, http, database_url=database.url)
        await extender_only.start(ONE_EACH)
        yield extender_only


class Lab:
    """Submits jobs and looks at them."""

    def __init__(self, plane: ControlPlane, extender_only: ExtenderOnly) -> None:
        self._plane = plane
        self._extender_only = extender_only

    async def submit(self, name: str, **job: object) -> None:
        await self._plane.api.create(PODS, an_openpai_pod(name, **job))  # type: ignore[arg-type]

    async def nodes(self) -> dict[str, str | None]:
        """Where each pod is."""
        pods = await self._plane.api.list(PODS)
        alive = [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in alive}

    async def becomes(self, wanted: dict[str, str | None], *, seconds: float = 30) -> None:
        """Wait until exactly these pods exist, each where it should be."""
        found: dict[str, str | None] = {}

        async def is_so() -> bool:
            found.clear()
            found.update(await self.nodes())
            return found == wanted

        await poll_until(is_so, deadline_seconds=seconds, explain=lambda: f"pods are {found}")

    async def runs(self, name: str) -> str:
        """Wait until a pod is bound; its node."""

        async def node() -> str:
            return (await self.nodes()).get(name) or ""

        return await poll_until(node, deadline_seconds=30, explain=lambda: f"{name} waits")

    async def run_on(self, nodes: set[str]) -> list[str]:
        """Wait until exactly these nodes have a pod each; which pods."""

        async def pods() -> list[str]:
            placed = {pod: node for pod, node in (await self.nodes()).items() if node is not None}
            return sorted(placed) if set(placed.values()) == nodes else []

        return await poll_until(pods, deadline_seconds=30, explain=lambda: f"not on {nodes}")

    async def waits(self, name: str) -> str:
        """Wait until the extender says why a pod waits; the reason."""

        async def reason() -> str:
            told = await self._extender_only.get(f"/v1/explain/default/{name}")
            return str(told.get("waiting", {}).get("reason", ""))

        return await poll_until(reason, deadline_seconds=20, explain=lambda: f"{name} not asked")

    async def end(self, name: str) -> None:
        await self._plane.api.delete(f"{PODS}/{name}", gracePeriodSeconds="0")

    async def use(self, cluster: JsonObject) -> None:
        """Change the cluster file, and wait until it is in force."""
        self._extender_only.use_cluster(cluster)

        async def is_in_force() -> bool:
            vcs = (await self._extender_only.get("/v1/vcs"))["items"]
            return {vc["vc"] for vc in vcs} == set(cluster["virtualClusters"])

        await poll_until(is_in_force, deadline_seconds=10, explain=lambda: "not in force")


@pytest_asyncio.fixture(loop_scope="session")
async def lab(plane: ControlPlane, extender_only: ExtenderOnly) -> AsyncIterator[Lab]:
    """An empty cluster under the first configuration, and again afterwards."""
    lab = Lab(plane, extender_only)
    await lab.use(ONE_EACH)
    yield lab
    await plane.api.delete(PODS, gracePeriodSeconds="0")
    await lab.becomes({})


async def test_a_vc_has_its_machine_and_no_other(lab: Lab) -> None:
    for index in range(3):
        await lab.submit(f"job-{index}", vc="vc1")

    (first,) = await lab.run_on({DAN})
    (waits, *_) = [f"job-{index}" for index in range(3) if f"job-{index}" != first]
    assert "0 of the 1 leaf cells promised to VC vc1 are unused" in await lab.waits(waits)
    await lab.submit("other", vc="default")
    assert await lab.run_on({DAN, CAROL}) == [first, "other"]
    await lab.end(first)

    async def another_runs() -> bool:
        return sorted(filter(None, (await lab.nodes()).values())) == [CAROL, DAN]

    await poll_until(another_runs, deadline_seconds=20, explain=lambda: "the machine stays idle")


async def test_prod_preempts_test_in_its_own_vc(lab: Lab) -> None:
    await lab.submit("low", vc="vc1", priority_class="test")
    await lab.becomes({"low": DAN})

    await lab.submit("high", vc="vc1", priority_class="prod")
    await lab.becomes({"high": DAN})


async def test_an_opportunistic_job_borrows_an_idle_machine_until_its_owner_comes(
    lab: Lab,
) -> None:
    await lab.submit("own", vc="vc1", priority_class="prod")
    await lab.becomes({"own": DAN})
    await lab.submit("borrower", vc="vc1", priority_class="oppo")
    await lab.becomes({"own": DAN, "borrower": CAROL})

    await lab.submit("owner", vc="default", priority_class="test")
    await lab.becomes({"own": DAN, "owner": CAROL})


async def test_a_gang_starts_whole_or_not_at_all(lab: Lab) -> None:
    await lab.use(BOTH_FOR_DEFAULT)
    await lab.submit("first", vc="default")
    node = await lab.runs("first")
    for index in range(2):
        await lab.submit(f"gang-{index}", vc="default", gang=("gang", 2))

    await lab.waits("gang-0")
    await lab.waits("gang-1")
    assert await lab.nodes() == {"first": node, "gang-0": None, "gang-1": None}
    await lab.end("first")
    found = await poll_until(
        lambda: _both_placed(lab), deadline_seconds=30, explain=lambda: "the gang waits"
    )
    assert sorted(found) == [CAROL, DAN]


async def test_jobs_that_are_no_gang_start_one_by_one(lab: Lab) -> None:
    await lab.use(BOTH_FOR_DEFAULT)
    await lab.submit("first", vc="default")
    await lab.runs("first")
    for index in range(2):
        await lab.submit(f"part-{index}", vc="default")

    async def one_runs() -> bool:
        return sorted(filter(None, (await lab.nodes()).values())) == [CAROL, DAN]

    await poll_until(one_runs, deadline_seconds=20, explain=lambda: "none of them runs")
    await lab.end("first")

    async def both_run() -> bool:
        nodes = await lab.nodes()
        return len(nodes) == 2 and None not in nodes.values()

    await poll_until(both_run, deadline_seconds=20, explain=lambda: "one of them waits")


async def test_a_gang_beyond_its_vcs_quota_waits_whole_and_says_why(lab: Lab) -> None:
    await lab.use(BOTH_FOR_DEFAULT)
    for index in range(3):
        await lab.submit(f"big-{index}", vc="default", gang=("big", 3))

    reason = await lab.waits("big-0")
    assert reason.startswith("gang default/big needs 3 x 1 leaf cells")
    assert list((await lab.nodes()).values()) == [None, None, None]


async def test_a_stuck_gang_of_one_vc_does_not_delay_another(lab: Lab) -> None:
    for index in range(20):
        await lab.submit(f"stuck-{index}", vc="vc1", priority_class="prod", gang=("stuck", 20))
    await lab.waits("stuck-19")

    await lab.submit("quick", vc="default", priority_class="test")
    stuck: dict[str, str | None] = {f"stuck-{index}": None for index in range(20)}
    await lab.becomes({**stuck, "quick": CAROL}, seconds=5)


async def test_kube_scheduler_ends_its_part_of_a_gang_and_we_the_rest(
    plane: ControlPlane, extender_only: ExtenderOnly, lab: Lab
) -> None:
    """Pods with devices: the nodes look full to kube-scheduler, so that it asks for victims."""
    await lab.use(BOTH_FOR_DEFAULT)
    for index in range(2):
        await lab.submit(
            f"low-{index}", vc="default", priority_class="oppo", gang=("low", 2), has_device=True
        )
    await poll_until(lambda: _both_placed(lab), deadline_seconds=20, explain=lambda: "no gang")

    await lab.submit("high", vc="default", priority_class="prod", has_device=True)
    node = await lab.runs("high")
    await lab.becomes({"high": node})
    metrics = await extender_only.get("/metrics", as_text=True)
    assert 'cellgate_extender_preemptions_total{by="kube-scheduler",cause="borrowed"}' in metrics
    told = [event["reason"] for event in await plane.api.list("/api/v1/namespaces/default/events")]
    assert "Preempted" in told


HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[[[[" * 10_000,
    b'{"Pod": ' + b'{"a":' * 3_000,
    b'{"Pod": {"metadata": {"name": "\xff"}}}',
    b'{"Pod": {"metadata": {"uid": ["x"]}, "spec": {"containers": 7}}, "NodeNames": ["x"]}',
    b'{"PodName": "../../x", "PodNamespace": "%2e%2e", "PodUID": "u", "Node": "n"}',
    b'{"pod": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "-1"}}}]}}}',
    b"x" * 70 * 2**20,
]


@pytest.mark.parametrize(
    "path",
    [*(f"/v1/extender/{verb}" for verb in ("filter", "prioritize", "preempt", "bind")),
     "/v1/simulate"],
)  # fmt: skip
async def test_hostile_requests_are_refused_and_change_nothing(
    extender_only: ExtenderOnly, lab: Lab, path: str
) -> None:
    await lab.submit("job", vc="vc1")
    await lab.becomes({"job": DAN})
    before = (
        await extender_only.get("/v1/gangs"),
        await extender_only.get("/v1/inspect/clusterstatus"),
    )
    for body in HOSTILE:
        status, answer = await extender_only.post(path, body)
        is_harmless = answer in ({"NodeNameToMetaVictims": {}}, [], [{"Host": "x", "Score": 0}])
        assert 400 <= status < 500 or is_harmless or answer["Error"], (body[:60], answer)
    assert extender_only.extender.is_running()
    assert before == (
        await extender_only.get("/v1/gangs"),
        await extender_only.get("/v1/inspect/clusterstatus"),
    )
    for hostile in ("/v1/gangs?limit=-1", "/v1/explain/%00/%ff", "/v1/vcs/../../etc/passwd"):
        assert "error" in await extender_only.get(hostile)


async def test_a_pod_carries_what_its_container_reads(plane: ControlPlane, lab: Lab) -> None:
    await lab.submit("job", vc="vc1")
    await lab.becomes({"job": DAN})

    annotations = (await plane.api.get(f"{PODS}/job"))["metadata"]["annotations"]
    assert annotations[marks.HIVED_ISOLATION_ANNOTATION] == "0"
    assert marks.HIVED_BIND_INFO_ANNOTATION in annotations


async def _both_placed(lab: Lab) -> list[str]:
    nodes = [node for node in (await lab.nodes()).values() if node is not None]
    return nodes if len(nodes) == 2 else []
