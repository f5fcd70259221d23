"""Quotas with `over: CLASS` and real controllers: overflow takes nothing from others, and rises."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import told
from tests.support.installed.installation import Installation
from tests.support.installed.policies import delete_policy, promise_nodes, put_policy
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import PodBuilder, a_new_pod
from tests.support.kube.workloads import a_template, a_workload

QUOTAS = """groups:
- {name: g, limits: {leafCells: 16}, over: oppo, users: [{name: alice}, {name: bob}]}
"""
CLASS_OF = marks.EFFECTIVE_CLASS_ANNOTATION


@pytest.fixture(scope="module")
def node_count() -> int:
    return 4


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quota(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[None]:
    """Sixteen leaf cells within quota, thirty-two in all, of which three nodes are promised."""
    await promise_nodes(plane, 3)
    await put_policy(plane, "quotas", QUOTAS)
    await asyncio.sleep(2)  # in force on every replica by then
    yield
    await delete_policy(plane, "quotas")


def a_gpu_pod(name: str = "unused") -> PodBuilder:
    return a_new_pod(name).with_gpus(8).of_class("test").ending_at_once()


async def list_pods(plane: ControlPlane, pods: str) -> list[JsonObject]:
    found = await plane.api.list(pods)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def effective_class(pod: JsonObject) -> str:
    annotations: dict[str, str] = pod["metadata"].get("annotations", {})
    return annotations.get(CLASS_OF) or str(pod["spec"].get("priorityClassName"))


async def until_all_are_of(
    plane: ControlPlane, pods: str, class_name: str, *, count: int, **labels: str
) -> list[JsonObject]:
    """Wait until there are so many pods with these labels, all running, in this class."""
    seen: list[Any] = []
    found: list[JsonObject] = []

    async def look() -> bool:
        nonlocal found, seen
        found = [
            pod
            for pod in await list_pods(plane, pods)
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        ]
        seen = [(pod["status"].get("phase"), effective_class(pod)) for pod in found]
        return seen == [("Running", class_name)] * count

    await poll_until(look, deadline_seconds=40, explain=lambda: f"pods are {seen}")
    return found


@pytest.mark.usefixtures("quota")
async def test_a_rolling_update_at_full_quota_ends_in_the_class_that_was_asked_for(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """New pods come while the old ones still hold the quota."""
    namespace = pods.split("/")[4]
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    def deployment(version: str) -> ObjectBuilder:
        template = a_template(a_gpu_pod().labelled("app", "serve").labelled("version", version))
        fields = {"replicas": 2, "selector": {"matchLabels": {"app": "serve"}}}
        return a_workload("Deployment", "serve", template=template, namespace=None, **fields)

    await plane.api_as("bob").create(path, deployment("one"))
    await until_all_are_of(plane, pods, "test", count=2, version="one")
    change = {"spec": {"template": deployment("two")["spec"]["template"]}}
    await plane.api_as("bob").patch(f"{path}/serve", change)
    rolled = await until_all_are_of(plane, pods, "test", count=2, version="two")

    raised = [pod for pod in rolled if CLASS_OF in pod["metadata"]["annotations"]]
    assert raised, "a surge pod is lowered at first"
    name = raised[0]["metadata"]["name"]
    assert raised[0]["spec"]["priorityClassName"] == "oppo"
    message = await told(plane, pods, name.rpartition("-")[0], reason="ClassRaised")
    assert "of bob (8 leaf cells) is raised from class oppo to test: with it, group g holds" in (
        message
    )

    async def explained() -> bool:
        shown = await cellgate.inspect(f"/v1/explain/{namespace}/{name}")
        outcomes = {one["outcome"] for one in shown["decisions"]}
        standing = (shown["class"], shown.get("podClass"), shown.get("priority"))
        return standing == ("test", "oppo", 10) and "raised" in outcomes

    await poll_until(explained, deadline_seconds=10, explain=lambda: "explain does not say it")
    await plane.api.delete(f"{path}/serve", propagationPolicy="Background")


@pytest.mark.usefixtures("quota")
async def test_overflow_lowers_no_colleague_and_only_cellgate_raises_it(
    plane: ControlPlane, pods: str
) -> None:
    await asyncio.sleep(1)  # the charges of the test before have ended by then
    await plane.api_as("bob").create(pods, a_gpu_pod("own-0"))
    for name in ("low-0", "low-1"):
        forged = a_gpu_pod(name).in_gang("low", size=2).annotated(CLASS_OF, "prod")
        low = await plane.api_as("bob").create(pods, forged)
    assert low["spec"]["priorityClassName"] == "oppo"
    assert CLASS_OF not in low["metadata"]["annotations"]
    assert low["metadata"]["annotations"][marks.OVER_QUOTA_ANNOTATION] == "test"

    colleague = await plane.api_as("alice").create(pods, a_gpu_pod("colleague-0"))
    assert colleague["spec"]["priorityClassName"] == "test"

    change = {"metadata": {"annotations": {CLASS_OF: "test"}}}
    with pytest.raises(ApiError, match="only Cellgate may change it"):
        await plane.api_as("bob").patch(f"{pods}/low-0", change)

    for name in ("own-0", "colleague-0"):
        await plane.api.delete(f"{pods}/{name}", gracePeriodSeconds="0")
    raised = await until_all_are_of(plane, pods, "test", count=2)
    assert [pod["spec"]["priorityClassName"] for pod in raised] == ["oppo", "oppo"]
    assert [CLASS_OF in pod["metadata"]["annotations"] for pod in raised] == [True, True]
