"""Who may call the extender on a real control plane: kube-scheduler, people, an intruder."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from certs.clients import SCHEDULER
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import check_no_leaf_cell_twice, create, end, gang_pods, running
from tests.support.installed.installation import NAMESPACE, Installation, installed

PODS = "/api/v1/namespaces/default/pods"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
VERBS = ("filter", "prioritize", "preempt", "bind")


@pytest.fixture(scope="module")
def node_count() -> int:
    return 2


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate as it serves in a cluster."""
    async with installed(plane, serves_tls=True) as installation:
        yield installation


async def _ask(
    cellgate: Installation, path: str, *, token: str = "", client: str | None = None, **more: Any
) -> tuple[int, Any]:
    """Ask the extender: the status, and what it said."""
    connector = aiohttp.TCPConnector(ssl=cellgate.trust(client=client))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(connector=connector) as http:
        method = "POST" if more else "GET"
        url = cellgate.extender_url + path
        async with http.request(method, url, headers=headers, **more) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())


async def _service_account(plane: ControlPlane, name: str, *, role: str | None = None) -> str:
    """The token of a pod that runs as a service account, with or without a role of ours."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await plane.api.create(accounts, {"metadata": {"name": name}})
    if role is not None:
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        body = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        await plane.api.create(BINDINGS, body)
    return await plane.service_account_token("default", name)


async def test_kube_scheduler_schedules_over_tls_with_its_certificate(
    plane: ControlPlane, cellgate: Installation
) -> None:
    await create(plane, PODS, gang_pods("bert", size=2, gpus=8))
    members = await running(plane, PODS, "bert", size=2)
    assert {member["spec"]["nodeName"] for member in members} == {"node-0", "node-1"}
    check_no_leaf_cell_twice(members)
    assert await cellgate.decisions("default/bert")
    await end(plane, PODS, "bert", size=2)


async def test_a_pod_without_certificate_gets_nothing_from_verbs(
    plane: ControlPlane, cellgate: Installation
) -> None:
    intruder = await _service_account(plane, "intruder")
    pod = {"metadata": {"name": "x", "uid": "u"}, "spec": {}}
    body = {"Pod": pod, "NodeNames": ["node-0"]}
    refused = {
        "error": "verbs need the client certificate of cellgate-scheduler; tokens are not accepted"
    }
    for verb in VERBS:
        for token in ("", intruder, plane.token()):
            answer = await _ask(cellgate, f"/v1/extender/{verb}", token=token, json=body)
            assert answer == (401, refused)
    status, answer = await _ask(cellgate, "/v1/extender/filter", client=SCHEDULER, json=body)
    assert (status, answer["Error"]) == (200, "")


async def test_renewed_certificates_are_used_without_a_restart(
    plane: ControlPlane, cellgate: Installation
) -> None:
    before = await _served(cellgate)
    for name in ("extender", SCHEDULER):
        for path in cellgate.paths_of(name):
            path.unlink()
    cellgate.mount_certificates()

    async def is_new() -> bool:
        return await _served(cellgate) != before

    await poll_until(is_new, deadline_seconds=30, explain=lambda: "still the old certificate")
    await create(plane, PODS, gang_pods("t5", size=1, gpus=8))
    await running(plane, PODS, "t5", size=1)


async def _served(cellgate: Installation) -> str:
    """The certificate that the extender serves with."""
    host, port = "127.0.0.1", cellgate.extender_ports[0]
    return await asyncio.to_thread(ssl.get_server_certificate, (host, port))


async def test_a_serving_certificate_is_not_taken_for_a_caller(cellgate: Installation) -> None:
    with pytest.raises(aiohttp.ClientError):
        await _ask(cellgate, "/v1/gangs", client="extender")


async def test_people_read_what_their_role_allows(
    plane: ControlPlane, cellgate: Installation
) -> None:
    inspector = await _service_account(plane, "looker", role="cellgate-inspector")
    nobody = await _service_account(plane, "nobody")

    for path in ("/", "/openapi.json", "/v1/gangs", "/v1/inspect/clusterstatus"):
        assert (await _ask(cellgate, path, token=inspector))[0] == 200
        status, answer = await _ask(cellgate, path, token=nobody)
        assert (status, answer["error"]) == (
            403,
            f"system:serviceaccount:default:nobody may not get {path}: "
            "bind a ClusterRole that allows it, such as cellgate-inspector",
        )
        assert (await _ask(cellgate, path))[0] == 401
    assert (await _ask(cellgate, "/v1/simulate", token=inspector, json={}))[0] == 400
    # Every user reads the own runs.
    assert await _ask(cellgate, "/v1/runs", token=nobody) == (200, {"items": []})
    status, told = await _ask(cellgate, "/v1/runs?user=bob", token=nobody)
    assert (status, "only the own runs" in str(told)) == (403, True)
    assert (await _ask(cellgate, "/v1/usage?by=team", token=nobody))[0] == 400
    assert (await _ask(cellgate, "/v1/simulate", token=nobody, json={}))[0] == 403
    assert (await _ask(cellgate, "/v1/gangs", token="made-up"))[0] == 401


async def test_a_user_without_rights_verifies_the_extender_by_its_published_ca(
    plane: ControlPlane, cellgate: Installation
) -> None:
    token = await _service_account(plane, "reader")
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    reader = plane.api_with_token(token)
    stored = await reader.wait_until(f"{path}/cellgate-ca", lambda found: "data" in found)
    (ca,) = stored["data"].values()
    assert "PRIVATE" not in ca
    with pytest.raises(ApiError, match="403"):
        await reader.list(path)
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ca))
    async with aiohttp.ClientSession(connector=connector) as http:
        headers = {"Authorization": f"Bearer {token}"}
        url, host = cellgate.extender_url, f"cellgate-extender.{NAMESPACE}.svc"
        answered = http.get(f"{url}/v1/gangs", headers=headers, server_hostname=host)
        async with answered as answer:
            assert answer.status == 403  # known, and without the right


async def test_the_probes_of_kube_scheduler_answer_without_credentials(
    cellgate: Installation,
) -> None:
    """As its Deployment asks: with the rights of our role, and a certificate of its own making."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
        for path in ("/livez", "/readyz"):
            async with http.get(f"https://127.0.0.1:{cellgate.scheduler_port}{path}") as answer:
                assert answer.status == 200


async def test_probes_are_open_and_metrics_are_not(
    plane: ControlPlane, cellgate: Installation
) -> None:
    for path in ("/healthz", "/readyz", "/leader"):
        assert (await _ask(cellgate, path))[0] == 200
    without_right = await plane.service_account_token(NAMESPACE, "cellgate-extender")
    assert (await _ask(cellgate, "/metrics", token=without_right))[0] == 403
    status, text = await _ask(cellgate, "/metrics", token=plane.token())
    assert status == 200
    assert "cellgate_extender_verb_seconds" in text
