"""From `kubectl create` to a running pod, through the real API server and kube-scheduler."""

import json
import re
import secrets
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import told
from tests.support.installed.installation import NAMESPACE, Installation
from tests.support.kube.pods import PodBuilder, a_new_pod

POLICY = f"/api/v1/namespaces/{NAMESPACE}/configmaps/cellgate-rules"


@pytest.fixture(scope="module")
def node_count() -> int:
    return 4


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(plane: ControlPlane) -> AsyncIterator[str]:
    """A namespace of the test's own, emptied at once when the test is over."""
    name = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    await plane.api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds="0")


def a_user_pod(name: str, *, gpus: int = 0, class_name: str = "", **labels: str) -> PodBuilder:
    """A pod as a user writes it."""
    pod = a_new_pod(name).with_metadata(labels=labels).ending_at_once()
    pod = pod.with_gpus(gpus) if gpus else pod.with_cpu("100m")
    return pod.of_class(class_name) if class_name else pod


async def running(plane: ControlPlane, namespace: str, name: str) -> JsonObject:
    """The pod, once it runs."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    return await plane.api.wait_until(path, lambda pod: pod["status"]["phase"] == "Running")


async def test_a_prod_pod_is_lowered_by_a_rule_and_runs_where_the_extender_chose(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    pod = a_user_pod("train", gpus=2, class_name="prod")

    created = await plane.kubectl(
        "create", "-n", namespace, "-f", "-", user="alice", stdin=json.dumps(pod)
    )

    assert created.stderr.strip() == (
        "Warning: cellgate: rule 3 lowers class prod to oppo: "
        "the vision team experiments on idle cells"
    )
    stored = await running(plane, namespace, "train")
    spec, annotations = stored["spec"], stored["metadata"]["annotations"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (
        "oppo",
        100,
        "Never",
    )
    assert spec["schedulerName"] == marks.SCHEDULER_NAME
    assert annotations[marks.SUBMITTER_ANNOTATION] == "alice"
    assert annotations[marks.REQUESTED_CLASS_ANNOTATION] == "prod"
    placement = orjson.loads(annotations[marks.PLACEMENT_ANNOTATION])
    assert placement == {"node": spec["nodeName"], "leafCells": [0, 1]}
    assert annotations[marks.HIVED_ISOLATION_ANNOTATION] == "0,1"


async def test_every_step_of_a_pod_is_in_the_log(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    await plane.api_as("alice").create(
        f"/api/v1/namespaces/{namespace}/pods", a_user_pod("logged", gpus=1, class_name="prod")
    )
    stored = await running(plane, namespace, "logged")
    node = stored["spec"]["nodeName"]

    async def seen() -> list[dict[str, Any]]:
        """Return the decisions, without the rows about its run in the history."""
        found = await cellgate.decisions(f"{namespace}/logged")
        rows = [row for row in reversed(found) if row["kind"] != "run"]
        return rows if len(rows) >= 4 else []

    rows = await poll_until(seen, deadline_seconds=10, explain=lambda: "rows are missing")
    assert [(row["service"], row["kind"], row["outcome"]) for row in rows] == [
        ("webhook", "admission", "admitted"),
        ("extender", "placement", "placed"),
        ("extender", "release", "released"),
        ("extender", "bind", "bound"),
    ]
    (admission, placed, _, bind) = rows
    assert (bind["reason"], placed["reason"]) == (f"bound to {node}", f"placed on {node}")
    assert (
        admission["details"]["decision"]
        == stored["metadata"]["annotations"][marks.DECISION_ANNOTATION]
    )


async def test_times_of_the_api_have_one_form(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await plane.api_as("alice").create(pods, a_user_pod("runs", gpus=1))
    await running(plane, namespace, "runs")
    await plane.api_as("alice").create(pods, a_user_pod("waits", gpus=99))
    for path in (
        "/v1/waiting",
        "/v1/nodes",
        f"/v1/explain/{namespace}/waits",
        f"/v1/decisions?subject={namespace}/runs",
        "/v1/usage",
        "/v1/predictions",
        "/v1/runs?members=true",
    ):

        async def times(path: str = path) -> list[str]:
            text = orjson.dumps(_without_details(await cellgate.inspect(path))).decode()
            return re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', text)

        found = await poll_until(times, deadline_seconds=20, explain=lambda: "no time is shown")
        assert [one for one in found if not re.fullmatch(r"[\d-]{10}T[\d:]{8}Z", one)] == [], path


def _without_details(answer: Any) -> Any:
    """Without what is shown as it was recorded."""
    if isinstance(answer, dict):
        return {key: _without_details(it) for key, it in answer.items() if key != "details"}
    return [_without_details(one) for one in answer] if isinstance(answer, list) else answer


async def test_a_gang_gets_places_of_its_own(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    labels = {marks.GANG_LABEL: "bert", marks.GANG_SIZE_LABEL: "3"}
    for name in ("bert-0", "bert-1", "bert-2"):
        await plane.api_as("bob").create(
            f"/api/v1/namespaces/{namespace}/pods",
            a_user_pod(name, gpus=8, class_name="test", **labels),
        )

    pods = [await running(plane, namespace, f"bert-{index}") for index in range(3)]

    nodes = [pod["spec"]["nodeName"] for pod in pods]
    assert len(set(nodes)) == 3
    told = [pod["metadata"]["annotations"][marks.HIVED_ISOLATION_ANNOTATION] for pod in pods]
    assert told == ["0,1,2,3,4,5,6,7"] * 3


async def test_a_gang_that_does_not_fit_says_why(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    labels = {marks.GANG_LABEL: "huge", marks.GANG_SIZE_LABEL: "5"}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for index in range(5):
        await plane.api_as("bob").create(pods, a_user_pod(f"huge-{index}", gpus=8, **labels))
    assert f"gang {namespace}/huge needs 5 x 8 leaf cells, 40 in total" in await told(
        plane, pods, "huge"
    )


async def test_a_pod_without_gpus_never_reaches_us(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    before = await cellgate.webhook_requests()

    await plane.api_as("alice").create(f"/api/v1/namespaces/{namespace}/pods", a_user_pod("plain"))

    stored = await running(plane, namespace, "plain")
    assert marks.SUBMITTER_ANNOTATION not in stored["metadata"].get("annotations", {})
    assert stored["spec"]["schedulerName"] == "default-scheduler"
    assert await cellgate.webhook_requests() == before


async def test_a_class_that_is_not_listed_is_refused(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    pod = a_user_pod("greedy", gpus=1, class_name="system-cluster-critical")

    answer = await plane.kubectl(
        "create", "-n", namespace, "-f", "-", user="alice", stdin=json.dumps(pod), check=False
    )

    assert answer.returncode != 0
    assert answer.stderr.strip().endswith(
        'admission webhook "pods.cellgate.io" denied the request: spec.priorityClassName: '
        'class "system-cluster-critical" is not in the Classes document; '
        "its classes are prod, test, oppo"
    )


async def test_a_bad_policy_is_refused_with_every_problem(
    plane: ControlPlane, cellgate: Installation
) -> None:
    document = "apiVersion: cellgate.io/v1\nkind: Rules\nrules:\n- {usr: x, then: nowhere}\n"
    before = await plane.api.get(POLICY)

    with pytest.raises(ApiError) as error:
        await plane.api.patch(POLICY, {"data": {"policy.yaml": document}}, kind="merge")

    message = error.value.body["message"]
    assert "ConfigMap cellgate-rules: rules[0].usr: unknown key" in message
    assert await plane.api.get(POLICY) == before


async def test_a_document_that_others_need_cannot_be_deleted(
    plane: ControlPlane, cellgate: Installation
) -> None:
    with pytest.raises(ApiError) as error:
        await plane.api.delete(POLICY.replace("rules", "classes"))
    assert "ConfigMap cellgate-rules: rules[1].then: " in error.value.body["message"]


async def test_a_pod_bound_by_hand_is_counted_and_its_forged_placement_is_not_believed(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    forged = a_user_pod("forged", gpus=1)
    forged["metadata"]["annotations"] = {
        marks.PLACEMENT_ANNOTATION: '{"node":"node-3","leafCells":[0,1,2,3,4,5,6,7]}'
    }
    forged["spec"]["nodeName"] = "node-3"
    await plane.api.create(f"/api/v1/namespaces/{namespace}/pods", forged)  # an admin may
    stored = await running(plane, namespace, "forged")
    assert marks.PLACEMENT_ANNOTATION not in stored["metadata"]["annotations"]

    async def holders() -> list[JsonObject]:
        nodes = {node["name"]: node["holders"] for node in await cellgate.nodes()}
        return list(nodes["node-3"])

    (held,) = await poll_until(holders, deadline_seconds=10, explain=lambda: "not counted")
    assert (held["pod"], held["uid"]) == (f"{namespace}/forged", stored["metadata"]["uid"])
    assert len(held["leafCells"]) == 1
    assert held["since"]


async def test_a_new_rule_is_in_force_within_two_seconds(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    document = "apiVersion: cellgate.io/v1\nkind: Rules\nrules:\n- {then: fail, note: closed}\n"
    before = (await plane.api.get(POLICY))["data"]
    await plane.api.patch(POLICY, {"data": {"policy.yaml": document}}, kind="merge")
    try:
        path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"

        async def is_refused() -> bool:
            try:
                await plane.api_as("bob").create(path, a_user_pod("late", gpus=1))
            except ApiError as error:
                return "refused by rule 1" in error.body["message"]
            return False

        await poll_until(is_refused, deadline_seconds=5, explain=lambda: "still admitted")
    finally:
        await plane.api.patch(POLICY, {"data": before}, kind="merge")


async def test_with_both_services_down_only_gpu_pods_wait(
    plane: ControlPlane, cellgate: Installation, namespace: str
) -> None:
    await cellgate.webhook.stop()
    await cellgate.extender.stop()
    assert (cellgate.webhook.returncode, cellgate.extender.returncode) == (0, 0)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    alice = plane.api_as("alice")

    await alice.create(pods, a_user_pod("plain"))
    await running(plane, namespace, "plain")
    with pytest.raises(ApiError) as error:
        await alice.create(pods, a_user_pod("train", gpus=1, class_name="test"))
    assert error.value.status == 500
    assert "failed calling webhook" in error.value.body["message"]

    await cellgate.start_webhook()
    await cellgate.start_extender()
    await alice.create(pods, a_user_pod("train", gpus=1, class_name="test"))
    await running(plane, namespace, "train")
