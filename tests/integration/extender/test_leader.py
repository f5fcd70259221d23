"""An extender among rivals, on a simulated cluster."""

import asyncio

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
