"""An extender in this process, called as kube-scheduler calls it; the pods it is asked about."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from extender.app import run_extender
from extender.settings import ExtenderSettings
from kube.api.client import KubeClient
from service.settings import Address
from state.log.log import DecisionLog
from tests.support.kube.pods import a_new_pod
from tests.support.twins.log import MemoryDecisions

NODES = ["node-00", "node-01"]
PODS = "/api/v1/namespaces/lab/pods"


@asynccontextmanager
async def extending(
    client: KubeClient, *, store: MemoryDecisions | None = None, **settings: Any
) -> AsyncIterator["Caller"]:
    """Run an extender; a client of it, once it is ready."""
    log = DecisionLog(store or MemoryDecisions())
    chosen = ExtenderSettings(address=Address(host="127.0.0.1", port=0), **settings)
    async with (
        run_extender(chosen, client=client, log=log) as extender,
        aiohttp.ClientSession() as http,
    ):
        extender.supervisor.start("decision log", log.run())
        async with asyncio.timeout(30):
            while not extender.health.is_ready:
                await asyncio.sleep(0.01)
        yield Caller(http, extender.url)


class Caller:
    """Calls the extender as kube-scheduler does."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url

    @property
    def url(self) -> str:
        """Where the extender listens."""
        return self._url

    async def post(self, path: str, body: object) -> Any:
        async with self._http.post(self._url + path, json=body) as answer:
            return await answer.json() if answer.status == 200 else answer.status

    async def ask(self, verb: str, body: object) -> Any:
        data = body if isinstance(body, bytes) else None
        json = None if isinstance(body, bytes) else body
        url = f"{self._url}/v1/extender/{verb}"
        async with self._http.post(url, data=data, json=json) as answer:
            return await answer.json() if answer.status == 200 else answer.status

    async def get(self, path: str) -> Any:
        async with self._http.get(self._url + path) as answer:
            return await answer.json() if answer.status == 200 else answer.status

    async def look(self, path: str) -> tuple[int, Mapping[str, str], Any]:
        """Status, headers and body; the body of an answer that is not JSON is None."""
        async with self._http.get(self._url + path) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, answer.headers, await answer.json() if is_json else None

    async def until(self, path: str, is_so: Callable[[Any], bool]) -> Any:
        """Ask until the answer is as expected; the answer."""
        async with asyncio.timeout(30):
            while not is_so(answer := await self.get(path)):
                await asyncio.sleep(0.01)
        return answer

    async def text(self, path: str) -> str:
        async with self._http.get(self._url + path) as answer:
            return await answer.text()

    async def filter(self, pod: dict[str, Any], nodes: list[str] = NODES) -> Any:
        return await self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})

    async def bind(self, pod: dict[str, Any], node: str) -> str:
        metadata = pod["metadata"]
        body = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        answer = await self.ask("bind", body)
        error: str = answer["Error"]
        return error

    async def preempt(self, pod: dict[str, Any], candidates: dict[str, list[str]]) -> Any:
        victims = {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
            for node, uids in candidates.items()
        }
        body = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
        return (await self.ask("preempt", body))["NodeNameToMetaVictims"]

    async def place(self, pod: dict[str, Any], nodes: list[str] = NODES) -> str:
        """Filter and bind; the node."""
        answer = await self.filter(pod, nodes)
        (node,) = answer["NodeNames"]
        assert await self.bind(pod, node) == ""
        return str(node)


async def create(
    client: KubeClient,
    name: str,
    *,
    leaves: int = 8,
    class_name: str = "",
    annotations: Mapping[str, str] | None = None,
    **labels: str,
) -> dict[str, Any]:
    """A pod that asks for leaf cells; labels are those of `cellgate.io/`."""
    pod = a_new_pod(name).with_gpus(leaves)
    pod = pod.of_class(class_name) if class_name else pod
    for key, text in labels.items():
        pod = pod.labelled(f"cellgate.io/{key.replace('_', '-')}", text)
    for key, text in (annotations or {}).items():
        pod = pod.annotated(key, text)
    return await client.request("POST", PODS, body=pod)


async def events(client: KubeClient, *, about: str) -> list[tuple[str, str]]:
    """Reason and message of what was said about an object, in order of writing."""
    found = await client.request("GET", "/api/v1/events")
    return [
        (event["reason"], event["message"])
        for event in found["items"]
        if event["involvedObject"]["name"] == about
    ]
