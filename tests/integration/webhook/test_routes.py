"""The webhook over TLS, beside a simulated cluster: the API server's part is played by hand."""

import asyncio
import base64
import io
import ssl
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from kube import marks
from kube.api.client import MERGE_PATCH, KubeClient
from service.runner import RunningService
from service.settings import Address
from simulation.cluster import SimulatedCluster
from state.log.log import DecisionLog
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.pods import PodBuilder, a_new_pod
from tests.support.services.simulated_cluster import connected
from tests.support.twins.ledger import MemoryLedger
from tests.support.twins.log import MemoryDecisions
from tests.support.twins.usage import MemoryUsage
from tests.support.webhook.review_requests import review_request
from webhook.app import WebhookSettings, WebhookState, run_webhook

CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 100, high: true}, {name: oppo, cellPriority: -1}]
default: prod
"""
RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {user: "^mallory$", then: fail, note: "not you"}
- {vc: "^lab$", priority: prod, then: oppo, note: "the lab is opportunistic"}
- {occupied: "> 1", then: fail}
"""
QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- name: vision
  admins: [carol]
  limits: {leafCells: 64}
  users: [{name: bob, limits: {leafCells: %d}}]
"""
UID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
CONFIG_MAPS = "/api/v1/namespaces/cellgate-system/configmaps"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client of a simulated cluster that has these classes and rules."""
    cluster = SimulatedCluster(
        nodes=1, policies={"classes": CLASSES, "rules": RULES, "quotas": QUOTAS % 8}
    )
    async with connected(cluster, tmp_path) as client:
        yield client


@pytest.fixture
def decisions() -> MemoryDecisions:
    return MemoryDecisions()


@pytest.fixture
async def webhook(
    client: KubeClient, decisions: MemoryDecisions, tmp_path: Path
) -> AsyncIterator[RunningService]:
    settings = WebhookSettings(
        address=Address(host="127.0.0.1", port=0), certificates=tmp_path / "certs"
    )
    log = DecisionLog(decisions)
    ledger = MemoryLedger()
    state = WebhookState(log=log, ledger=ledger, usage=MemoryUsage(ledger))
    async with run_webhook(settings, client=client, state=state) as webhook:
        webhook.supervisor.start("decision log", log.run())
        async with asyncio.timeout(10):
            while not webhook.health.is_ready:
                await asyncio.sleep(0.01)
        yield webhook


class ApiServer:
    """Plays the API server."""

    def __init__(self, http: aiohttp.ClientSession, url: str, tls: ssl.SSLContext) -> None:
        self._http = http
        self._url = url
        self._tls = tls

    async def send(self, path: str, body: bytes) -> tuple[int, Any]:
        data = io.BytesIO(body)
        async with self._http.post(self._url + path, data=data, ssl=self._tls) as answer:
            return answer.status, await answer.json()

    async def review(
        self,
        path: str,
        obj: dict[str, Any] | None,
        *,
        old: dict[str, Any] | None = None,
        user: str = "alice",
        groups: Sequence[str] = ("team-a",),
        dry_run: bool = False,
        uid: str = "",
    ) -> dict[str, Any]:
        uid = uid or str(uuid.uuid4())
        request = review_request(obj, user=user, groups=groups, old=old, dry_run=dry_run, uid=uid)
        # As the API server writes it.
        body = orjson.dumps({"request": request}).replace(b"<", b"\\u003c")
        status, answer = await self.send(path, body)
        assert status == 200
        response: dict[str, Any] = answer["response"]
        assert response["uid"] == uid
        return response

    async def metrics(self) -> str:
        async with self._http.get(f"{self._url}/metrics", ssl=self._tls) as answer:
            return await answer.text()


@pytest.fixture
async def api_server(webhook: RunningService, tmp_path: Path) -> AsyncIterator[ApiServer]:
    tls = ssl.create_default_context(cafile=tmp_path / "certs" / "ca.crt")
    async with aiohttp.ClientSession() as http:
        yield ApiServer(http, webhook.url, tls)


def reviewed_pod(*, namespace: str = "vision", gpus: str = "1", class_name: str = "") -> PodBuilder:
    pod = a_new_pod("bert", namespace=namespace)
    pod = pod.with_spec(priority=1000, preemptionPolicy="PreemptLowerPriority")
    pod = pod.with_gpus(gpus) if gpus else pod
    return pod.of_class(class_name) if class_name else pod


def read_patch(response: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = orjson.loads(base64.b64decode(response["patch"]))
    return operations


async def test_the_largest_pod_that_there_can_be_is_reviewed(api_server: ApiServer) -> None:
    """By a call that failed, it would get past us where the admin chose to fail open."""
    stored, sent = reviewed_pod(), reviewed_pod()
    stored["spec"]["containers"][0]["args"] = ["<" * 1_500_000]
    sent["spec"]["containers"][0]["args"] = ["<" * 3_000_000]
    assert (await api_server.review("/mutate/pods", sent, user="bob"))["allowed"]
    sent["metadata"]["annotations"] = {marks.PLACEMENT_ANNOTATION: "forged"}
    changed = await api_server.review("/validate/pods", sent, old=stored)
    assert "only Cellgate may change it" in changed["status"]["message"]


async def test_a_pod_is_lowered_and_its_submitter_warned(
    api_server: ApiServer, decisions: MemoryDecisions
) -> None:
    pod = reviewed_pod(namespace="lab", class_name="prod")
    response = await api_server.review("/mutate/pods", pod, uid=UID)

    assert response["allowed"]
    (lowered,) = [line for line in response["warnings"] if "lowers" in line]
    assert lowered == ("cellgate: rule 2 lowers class prod to oppo: the lab is opportunistic")
    assert read_patch(response) == [
        {"op": "add", "path": "/spec/priorityClassName", "value": "oppo"},
        {"op": "remove", "path": "/spec/priority"},
        {"op": "remove", "path": "/spec/preemptionPolicy"},
        {
            "op": "add",
            "path": "/metadata/annotations",
            "value": {
                "cellgate.io/submitter": "alice",
                "cellgate.io/submitter-groups": '["team-a"]',
                "cellgate.io/requested-class": "prod",
                "cellgate.io/class": "oppo",
                "cellgate.io/decision": UID,
                "cellgate.io/request": "1 leaf cells, main=1 nvidia.com/gpu",
            },
        },
        {"op": "add", "path": "/spec/schedulerName", "value": "cellgate-scheduler"},
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": marks.QUEUED_GATE}]},
    ]
    async with asyncio.timeout(10):
        while not decisions.records:
            await asyncio.sleep(0.01)
    (record,) = decisions.records
    assert (record.subject, record.outcome) == ("lab/bert", "admitted")
    assert record.details["class"] == "oppo"


async def test_the_default_class_is_given_to_a_pod_that_names_none(api_server: ApiServer) -> None:
    response = await api_server.review("/mutate/pods", reviewed_pod())
    assert read_patch(response)[0]["value"] == "prod"


async def test_a_refusal_names_the_rule_and_its_note(api_server: ApiServer) -> None:
    response = await api_server.review("/mutate/pods", reviewed_pod(), user="mallory")

    assert not response["allowed"]
    assert "refused by rule 1" in response["status"]["message"]
    assert "not you" in response["status"]["message"]


async def test_a_dry_run_leaves_no_trace(api_server: ApiServer, decisions: MemoryDecisions) -> None:
    response = await api_server.review("/mutate/pods", reviewed_pod(), dry_run=True)
    await asyncio.sleep(0.05)

    assert response["allowed"]
    assert decisions.records == []


async def test_a_pod_without_leaf_cells_is_not_touched(api_server: ApiServer) -> None:
    assert await api_server.review("/mutate/pods", reviewed_pod(gpus=""), uid=UID) == {
        "uid": UID,
        "allowed": True,
    }


async def test_a_pod_that_makes_no_sense_is_refused_with_its_path(api_server: ApiServer) -> None:
    response = await api_server.review("/mutate/pods", reviewed_pod(gpus="-1"))

    assert not response["allowed"]
    message = response["status"]["message"]
    assert message.startswith("spec.containers[0].resources.limits[nvidia.com/gpu]: ")


async def test_a_bad_document_is_refused_with_every_problem(api_server: ApiServer) -> None:
    document = (
        "apiVersion: cellgate.io/v1\nkind: Rules\nrules: [{then: x}, {user: '(', then: fail}]"
    )
    config_map = a_policy_map("rules", document, name="cellgate-rules")

    response = await api_server.review("/validate/policies", config_map)

    assert not response["allowed"]
    assert "ConfigMap cellgate-rules: rules[1].user: " in response["status"]["message"]


async def test_a_second_document_of_a_kind_is_refused(api_server: ApiServer) -> None:
    config_map = a_policy_map("rules", RULES, name="more-rules")
    response = await api_server.review("/validate/policies", config_map)
    assert "there is already a Rules document" in response["status"]["message"]


@pytest.mark.parametrize(
    "config_map",
    [
        {"metadata": {"name": "x", "labels": {"cellgate.io/policy": "rules"}}},
        {"metadata": {"name": "x", "labels": {"cellgate.io/policy": "nonsense"}}, "data": {}},
        {"metadata": {"labels": {"cellgate.io/policy": "rules"}}, "data": {"policy.yaml": 7}},
    ],
    ids=["no data", "an unknown kind", "not a text"],
)
async def test_a_config_map_that_is_no_document_is_refused(
    api_server: ApiServer, config_map: dict[str, Any]
) -> None:
    response = await api_server.review("/validate/policies", config_map)
    assert not response["allowed"]


def quotas_map(leaf_cells: int, name: str = "cellgate-quotas") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"cellgate.io/policy": "quotas"}},
        "data": {"policy.yaml": QUOTAS % leaf_cells},
    }


async def test_a_groups_admin_changes_the_own_quotas_and_nothing_else(
    api_server: ApiServer,
) -> None:
    path, before, after = "/validate/policies", quotas_map(8), quotas_map(16)
    rules = {
        "metadata": {"name": "cellgate-rules", "labels": {"cellgate.io/policy": "rules"}},
        "data": {"policy.yaml": RULES},
    }
    assert (await api_server.review(path, after, old=before, user="carol"))["allowed"]
    for refused in (
        api_server.review(path, after, old=before, user="bob"),
        api_server.review(path, None, old=before, user="carol"),
        api_server.review(path, quotas_map(65), old=before, user="carol"),
        api_server.review(path, rules, old=rules, user="carol"),
        api_server.review(path, rules, old=before, user="carol"),
    ):
        assert not (await refused)["allowed"]
    broken = await api_server.review(path, quotas_map(-1), old=before, user="carol")
    assert "leafCells: must be at least 0" in broken["status"]["message"]
    admin = await api_server.review(path, None, old=before, groups=("system:masters",))
    assert admin["allowed"]


async def test_a_bad_document_that_got_in_changes_nothing_but_is_counted(
    api_server: ApiServer, client: KubeClient
) -> None:
    body = {"data": {"policy.yaml": "nonsense"}}
    path = f"{CONFIG_MAPS}/cellgate-rules"
    await client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
    async with asyncio.timeout(10):
        while "cellgate_policy_problems 0.0" in await api_server.metrics():
            await asyncio.sleep(0.01)

    response = await api_server.review("/mutate/pods", reviewed_pod(), user="mallory")
    assert not response["allowed"]


async def test_deleting_a_document_returns_to_its_default(
    api_server: ApiServer, client: KubeClient
) -> None:
    await client.request("DELETE", f"{CONFIG_MAPS}/cellgate-rules")
    async with asyncio.timeout(10):
        while not (await api_server.review("/mutate/pods", reviewed_pod(), user="mallory"))[
            "allowed"
        ]:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/mutate/pods", "/validate/policies"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"request": {}}',
        b'{"request": {"uid": "x", "operation": "CREATE", "userInfo": 7}}',
        b'{"request": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
    ids=["empty", "no request", "a list", "no uid", "wrong types", "deep"],
)
async def test_garbage_is_a_bad_request(api_server: ApiServer, path: str, body: bytes) -> None:
    status, answer = await api_server.send(path, body)
    assert status == 400
    assert answer["error"]


@pytest.mark.parametrize("part", ["metadata", "spec"])
@pytest.mark.parametrize("value", [None, 7, "x", [], [1], {"labels": 7, "containers": 7}])
async def test_a_strange_object_is_refused_or_let_pass_but_never_a_fault(
    api_server: ApiServer, part: str, value: object
) -> None:
    obj = {**reviewed_pod(), part: value}
    request = {
        "uid": "x",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": obj,
    }
    for path in ("/mutate/pods", "/validate/policies"):
        status, answer = await api_server.send(path, orjson.dumps({"request": request}))
        assert status == 200, answer


async def test_what_the_api_server_waits_must_be_a_duration(api_server: ApiServer) -> None:
    status, answer = await api_server.send("/mutate/pods?timeout=soon", b"{}")
    assert status == 400
    assert answer == {"error": "query parameter timeout: must be a duration such as 3s"}
