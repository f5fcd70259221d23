"""An extender among rivals, on a simulated cluster."""

import asyncio
from dataclasses import replace

from kube import marks
from kube.api.client import KubeClient
from kube.api.leadership import LeadershipSettings
from tests.support.services.extender import extending

PODS = "/api/v1/namespaces/cellgate-system/pods"


async def test_a_leader_marks_its_pod_with_its_term_and_for_the_service(client: KubeClient) -> None:
    body = {
        "metadata": {"name": "extender-0"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    await client.request("POST", PODS, body=body)
    term = LeadershipSettings(name="cellgate-extender", namespace="cellgate-system", identity="me")
    async with extending(client, leadership=term, pod_name="extender-0") as caller:
        answer = await caller.until("/leader", lambda answer: answer != 503)
        async with asyncio.timeout(10):
            while marks.LEADER_LABEL not in (await _metadata(client)).get("labels", {}):
                await asyncio.sleep(0.01)
        written = (await _metadata(client))["annotations"]
        assert written[marks.EPOCH_ANNOTATION] == str(answer["epoch"])


async def _metadata(client: KubeClient) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = (await client.request("GET", f"{PODS}/extender-0"))[
        "metadata"
    ]
    return found


async def test_a_replica_that_does_not_lead_refuses_inspection_and_names_the_leader(
    client: KubeClient,
) -> None:
    first = LeadershipSettings(name="cellgate-extender", namespace="cellgate-system", identity="a")
    async with extending(client, leadership=first) as leader:
        await leader.until("/leader", lambda answer: answer != 503)
        async with extending(client, leadership=replace(first, identity="b")) as standby:
            for path in ("/v1/gangs", "/v1/explain/lab/x", "/v1/inspect/clusterstatus"):
                status, headers, body = await standby.look(path)
                assert (status, headers["X-Cellgate-Leader"]) == (503, "a"), path
                assert headers["Connection"] == "close"
                assert body == {
                    "error": "this replica does not lead: a does, and only the leader can answer; "
                    "ask the Service cellgate-extender, which selects it"
                }
            assert await standby.post("/v1/simulate", {}) == 503
            for path in ("/healthz", "/metrics", "/openapi.json", "/"):
                assert (await standby.look(path))[0] == 200, path
            assert (await leader.look("/v1/gangs"))[0] == 200
