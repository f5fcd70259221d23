"""What the contract suite of the Kubernetes API is written with: raw requests and small bodies.

Everything a test makes is in a namespace of its own, so that suites may share a cluster.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest

from tests.support.kube.pods import a_new_pod

Object = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

LEAF_RESOURCE = "nvidia.com/gpu"
_DEADLINE_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server answered."""

    status: int
    body: Object
    warnings: tuple[str, ...]

    @property
    def refusal(self) -> tuple[int, str]:
        """The code and the reason of a Status."""
        return self.status, str(self.body.get("reason", ""))

    @property
    def version(self) -> str:
        """The resource version of the object answered."""
        return str(self.body["metadata"]["resourceVersion"])


class Kube:
    """An API server; the session knows its address, the headers name the user."""

    def __init__(
        self, session: aiohttp.ClientSession, headers: Mapping[str, str] | None = None
    ) -> None:
        self._session = session
        self._headers = dict(headers or {})

    def impersonating(self, user: str, group: str) -> "Kube":
        """The same server, with impersonation of another user."""
        others = {"Impersonate-User": user, "Impersonate-Group": group}
        return Kube(self._session, {**self._headers, **others})

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        **query: str,
    ) -> Answer:
        """Send one request; bytes are sent as they are, anything else as JSON."""
        data = body if isinstance(body, bytes | None) else orjson.dumps(body)
        headers = {**self._headers, "Content-Type": content_type}
        async with self._session.request(
            method, path, data=data, params=query, headers=headers
        ) as response:
            answered = orjson.loads(await response.read())
            warnings = tuple(response.headers.getall("Warning", []))
            return Answer(status=response.status, body=answered, warnings=warnings)

    async def create(self, path: str, body: object) -> Object:
        """Create an object that is known to be good."""
        answer = await self.send("POST", path, body)
        assert answer.status == 201, answer
        return answer.body

    async def get(self, path: str, **query: str) -> Object:
        """Read what is known to be there."""
        answer = await self.send("GET", path, **query)
        assert answer.status == 200, answer
        return answer.body

    async def wait_until_bound(self, path: str) -> None:
        """Wait until the API server's own cache has a binding: a deletion may read the pod there.

        A pod without a node gets no time to end.
        """
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while "nodeName" not in (await self.get(path, resourceVersion="0"))["spec"]:
                await asyncio.sleep(0.01)

    async def patch(self, path: str, body: object, *, content_type: str = MERGE_PATCH) -> Answer:
        """Change an object in part."""
        return await self.send("PATCH", path, body, content_type=content_type)

    async def names(self, path: str, **query: str) -> list[str]:
        """The names in a collection, in the order of the answer."""
        return [item["metadata"]["name"] for item in (await self.get(path, **query))["items"]]

    async def watch(self, path: str, *, count: int, **query: str) -> list[Object]:
        """The first events of a watch; fewer if the stream ends before."""
        events: list[Object] = []
        parameters = {"watch": "true", "timeoutSeconds": "10", **query}
        async with self._session.get(path, params=parameters, headers=self._headers) as response:
            assert response.status == 200, await response.text()
            while len(events) < count and (line := await response.content.readline()):
                events.append(orjson.loads(line))
        return events


class KubeContract:
    """What every part of the suite needs. A subclass adds the fixture `kube`, asked as an admin."""

    @pytest.fixture
    async def namespace(self, kube: Kube) -> str:
        """A new namespace."""
        body = {"metadata": {"generateName": "contract-"}}
        created = await kube.create("/api/v1/namespaces", body)
        return str(created["metadata"]["name"])

    @pytest.fixture
    def pods(self, namespace: str) -> str:
        """The path of the pods of the namespace."""
        return f"/api/v1/namespaces/{namespace}/pods"

    @pytest.fixture
    def node(self, namespace: str) -> str:
        """The name of a node that does not exist, of this test alone.

        Kubernetes ends pods that were bound to the same missing node for 40 seconds.
        """
        return f"node-of-{namespace}"

    @pytest.fixture
    def configmaps(self, namespace: str) -> str:
        """The path of the ConfigMaps of the namespace."""
        return f"/api/v1/namespaces/{namespace}/configmaps"


def a_configmap(name: str, *, labels: Mapping[str, str] | None = None, **data: str) -> Object:
    """A ConfigMap; the label `ours` tells it from those that controllers make."""
    metadata = {"name": name, "labels": {"ours": "yes", **(labels or {})}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def unscheduled_pod(name: str, *, leaf_count: int = 0, **spec: object) -> Object:
    """A pod that no scheduler takes."""
    pod = a_new_pod(name).with_spec(**{"schedulerName": "none", **spec})
    return pod.with_gpus(leaf_count) if leaf_count else pod


def a_binding(pod: str, node: str, **metadata: object) -> Object:
    """A Binding; metadata may carry preconditions and annotations."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


async def eventually(
    ask: Callable[[int], Awaitable[Answer]], holds: Callable[[Answer], bool]
) -> Answer:
    """Ask until the answer is as wanted: a real API server sees some changes late."""
    answer: Answer | None = None
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            for attempt in itertools.count():
                answer = await ask(attempt)
                if holds(answer):
                    return answer
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"still not as wanted: {answer}") from None
    raise AssertionError("counting never ends")
