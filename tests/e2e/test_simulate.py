"""What the extender says of a pod before it exists, and what the real control plane then does."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.identity import ALICE, BOB, User
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation
from tests.support.installed.policies import delete_policy, put_policy
from tests.support.kube.pods import PodBuilder, a_new_pod

DOCUMENTS = {
    "cluster": f"""
nodeTopology:
- levels: [kubernetes.io/hostname]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
virtualClusters:
  default:
    virtualCells:
    - leafType: {NodeShape().gpu_product}
      level: kubernetes.io/hostname
      cellNumber: 2
  other:
    virtualCells:
    - leafType: {NodeShape().gpu_product}
      level: kubernetes.io/hostname
      cellNumber: 1
""",
    "rules": 'rules: [{user: "^bob$", then: fail, note: bob has left}]',
    "identity": "vcs: {default: {users: [alice, bob]}}",
    "quotas": "groups: [{name: g, limits: {leafCells: 16}, over: queue, users: [{name: alice}]}]",
}


@pytest.fixture(scope="module")
def plane_options() -> ControlPlaneOptions:
    return ControlPlaneOptions(users=(ALICE, BOB, User("carol")))


@pytest.fixture(scope="module")
def node_count() -> int:
    return 3


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def documents(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[None]:
    """A rule against bob, a VC that is closed to carol, and two nodes for alice."""
    for kind, text in DOCUMENTS.items():
        await put_policy(plane, kind, text)
    await asyncio.sleep(2)  # in force on every replica by then
    yield
    for kind in list(DOCUMENTS)[1:]:  # the Cluster document stays while gangs run
        await delete_policy(plane, kind)


class Asking:
    """Asks about a pod, and then creates it."""

    def __init__(self, plane: ControlPlane, cellgate: Installation, pods: str) -> None:
        self._plane = plane
        self._cellgate = cellgate
        self._pods = pods

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return self._pods.split("/")[4]

    def pod(self, name: str, *, gpus: int = 8, **spec: Any) -> PodBuilder:
        return a_new_pod(name).with_gpus(gpus).of_class("prod").ending_at_once().with_spec(**spec)

    async def simulate(self, pod: JsonObject, *, user: str) -> JsonObject:
        named = {**pod, "metadata": {**pod["metadata"], "namespace": self.namespace}}
        return await self._cellgate.ask("/v1/simulate", {"pod": named, "user": user})

    async def create(self, pod: JsonObject, *, user: str) -> str:
        """Create a pod; return why it was refused."""
        try:
            await self._plane.api_as(user).create(self._pods, pod)
        except ApiError as error:
            return str(error.body["message"])
        return ""

    async def node_of(self, name: str) -> str:
        """The node that a pod is bound to."""
        found = ""

        async def is_bound() -> bool:
            nonlocal found
            found = (await self._plane.api.get(f"{self._pods}/{name}"))["spec"].get("nodeName", "")
            return bool(found)

        await poll_until(is_bound, deadline_seconds=30, explain=lambda: f"{name} is not bound")
        return found


@pytest.fixture
def asking(plane: ControlPlane, cellgate: Installation, pods: str) -> Asking:
    return Asking(plane, cellgate, pods)


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    ("user", "why"),
    [("bob", "bob has left"), ("carol", 'VC "default" is not open to "carol"')],
    ids=["by a rule", "because the VC is not open to the user"],
)
async def test_a_pod_that_is_refused_is_foretold_so(asking: Asking, user: str, why: str) -> None:
    pod = asking.pod("refused")
    told = await asking.simulate(pod, user=user)
    refusal = await asking.create(pod, user=user)
    assert (told["outcome"], told["problems"]) == ("refused", [])
    assert why in told["reason"]
    assert refusal.endswith(told["reason"]), refusal


@pytest.mark.usefixtures("documents")
async def test_places_and_usage_at_the_limit_are_foretold(
    plane: ControlPlane, cellgate: Installation, asking: Asking
) -> None:
    for name in ("one", "two"):
        pod = asking.pod(name)
        told = await asking.simulate(pod, user="alice")
        assert (told["outcome"], told["admission"]["class"]) == ("placed", "prod"), told
        assert await asking.create(pod, user="alice") == ""
        assert await asking.node_of(name) == told["placement"]["node"]

    told = await asking.simulate(asking.pod("three"), user="alice")
    assert (told["outcome"], told["admission"]["outcome"]) == ("quota", "queued")
    assert any("the limit is 16" in line for line in told["warnings"]), told
    assert await asking.create(asking.pod("three"), user="alice") == ""

    async def waits() -> bool:
        return any(entry["reason"] == told["reason"] for entry in await cellgate.waiting())

    await poll_until(waits, deadline_seconds=20, explain=lambda: f"nothing waits as in {told}")


@pytest.mark.usefixtures("documents")
async def test_a_pod_of_a_namespace_that_was_just_created_has_the_vc_of_its_label(
    plane: ControlPlane, cellgate: Installation
) -> None:
    """carol may not use the VC `default`."""
    for _ in range(10):
        name = f"young-{secrets.token_hex(4)}"
        metadata = {"name": name, "labels": {marks.VC_LABEL: "other"}}
        await plane.api.create("/api/v1/namespaces", {"metadata": metadata})
        pod = a_new_pod("p").with_gpus(1).of_class("prod").ending_at_once()
        pods = f"/api/v1/namespaces/{name}/pods"
        await plane.api_as("carol").create(pods, pod)

        async def is_known(name: str = name) -> bool:
            try:
                told = await cellgate.inspect(f"/v1/explain/{name}/p")
            except aiohttp.ClientResponseError:
                return False  # the extender has not seen the pod yet
            return bool(told["vc"] == "other")

        await poll_until(is_known, deadline_seconds=10, explain=lambda: "VC is not other")
        await plane.api.delete(f"{pods}/p", gracePeriodSeconds="0")


@pytest.mark.usefixtures("documents")
async def test_a_gang_that_waits_is_told_what_starts_now_and_that_starts(
    plane: ControlPlane, cellgate: Installation, asking: Asking
) -> None:
    """VC `other` has one node, and half of it is in use."""

    def pods(gang: str, *, members: int) -> list[JsonObject]:
        names = (f"{gang}-{index}" for index in range(members))
        return [
            asking.pod(name, gpus=4).in_vc("other").in_gang(gang, size=members) for name in names
        ]

    (half,) = pods("half", members=1)
    assert await asking.create(half, user="carol") == ""
    assert await asking.node_of("half-0")
    expected = "with 1 member instead of 2 it starts now"
    pair = pods("pair", members=2)
    told = await asking.simulate(pair[0], user="carol")
    assert told["outcome"] == "vc-full", told
    assert expected in _explanations(told["whatWouldChangeIt"]), told
    for pod in pair:
        assert await asking.create(pod, user="carol") == ""
    path = f"/v1/queue?gang={asking.namespace}/pair"
    shown: list[str] = []

    async def is_told() -> bool:
        nonlocal shown
        items = (await cellgate.inspect(path))["items"]
        shown = [text for one in items for text in _explanations(one.get("whatWouldChangeIt"))]
        return expected in shown

    await poll_until(is_told, deadline_seconds=20, explain=lambda: f"told {shown}")
    explained = await cellgate.inspect(f"/v1/explain/{asking.namespace}/pair-0")
    assert expected in _explanations(explained["waiting"]["whatWouldChangeIt"])
    (window,) = (await cellgate.inspect("/v1/windows?vc=other"))["items"]
    assert window["guaranteed"]["largestOnOneNode"]["leafCellsPerMember"] == 4, window
    (single,) = pods("single", members=1)
    assert await asking.create(single, user="carol") == ""
    assert await asking.node_of("single-0")


@pytest.mark.usefixtures("documents")
async def test_a_submitter_is_warned_of_a_wait_at_submission(
    plane: ControlPlane, asking: Asking, pods: str
) -> None:
    """VC `other` has one node. The gang that uses it is expected to run for hours.

    That is its owner's estimate, which counts as alice has hardly run anything before.
    """
    filler = asking.pod("filler", gpus=8).in_vc("other")
    filler["metadata"]["annotations"] = {marks.RUN_TIME_ANNOTATION: "8h"}
    assert await asking.create(filler, user="alice") == ""
    api, late = plane.api_as("carol"), asking.pod("late", gpus=8).in_vc("other")

    async def is_warned() -> bool:
        await api.create(pods, late, dryRun="All")
        return any("; when it starts is unknown: " in line for line in api.warnings)

    await poll_until(
        is_warned, deadline_seconds=60, explain=lambda: f"the warnings are {api.warnings}"
    )
    [told] = [line for line in api.warnings if "when it starts is unknown: " in line]
    assert "half hours that are needed" in told or "no history for " in told
    assert "in level default" in told


def _explanations(found: JsonObject | None) -> list[str]:
    return [one["explanation"] for one in found["variants"]] if found else []
