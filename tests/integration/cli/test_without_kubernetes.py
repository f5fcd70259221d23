"""What the webhook promises while the Kubernetes API is lost: it answers from what it knows."""

from contextlib import AsyncExitStack
from pathlib import Path

from tests.support.services.commands import cluster_with_policies, running


async def test_a_webhook_answers_from_what_it_knows(database_url: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as kubernetes:
        kubeconfig = await kubernetes.enter_async_context(cluster_with_policies(tmp_path))
        async with running(
            "webhook", kubeconfig=kubeconfig, database_url=database_url, folder=tmp_path
        ) as webhook:
            await webhook.until_ready()
            await kubernetes.aclose()
            assert (await webhook.review("lost")).is_allowed
            refused = await webhook.review("lost-too", user="mallory")
            assert "not you" in refused.message
            assert (await webhook.get("/readyz"))[0] == 200
