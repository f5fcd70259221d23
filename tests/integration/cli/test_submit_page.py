"""Examples of docs/submit.md run on a simulated cluster, through both services."""

import asyncio
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.support.documents.submit_page import Example, examples
from tests.support.services.cellgate_run import Running, cellgate_run

_NAMESPACE: Final = "lab"
_SECONDS: Final = 60
_FORMS: Final = ("evaluate", "bert", "sweep", "llama", "clip-0")
"""Examples that need no PodGroup, group or leaf type: the simulated cluster has none of them."""


async def test_gangs_of_the_page_start_whole(tmp_path: Path) -> None:
    chosen = [example for example in examples() if example.name in _FORMS]
    assert len(chosen) == len(_FORMS)
    async with cellgate_run(tmp_path) as run, aiohttp.ClientSession() as http:
        for example in chosen:
            names = [
                await _create(http, run, f"{example.name}-{index}", pod)
                for index, pod in enumerate(_pods(example))
            ]
            async with asyncio.timeout(_SECONDS):
                nodes = [await _node(http, run, name) for name in names]
            assert len(nodes) == example.size


def _pods(example: Example) -> list[dict[str, Any]]:
    """Its pods without the fields that the simulated cluster gives them."""
    return [
        {
            "metadata": {
                key: value
                for key, value in (pod.get("metadata") or {}).items()
                if key in ("labels", "annotations")
            },
            "spec": pod["spec"],
        }
        for pod in example.pods()
    ]


async def _create(http: aiohttp.ClientSession, run: Running, name: str, pod: dict[str, Any]) -> str:
    body = {**pod, "metadata": {**pod["metadata"], "name": name}}
    async with http.post(
        f"{run.url('cluster')}/api/v1/namespaces/{_NAMESPACE}/pods",
        json=body,
        headers={"Impersonate-User": "carol"},
    ) as answer:
        assert answer.status == 201, await answer.text()
    return name


async def _node(http: aiohttp.ClientSession, run: Running, name: str) -> str:
    """Wait until a pod is bound; its node."""
    while True:
        async with http.get(
            f"{run.url('cluster')}/api/v1/namespaces/{_NAMESPACE}/pods/{name}"
        ) as answer:
            pod = await answer.json()
        if pod["spec"].get("nodeName"):
            return str(pod["spec"]["nodeName"])
        await asyncio.sleep(0.1)
