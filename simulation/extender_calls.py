"""The calls that kube-scheduler makes to an extender: names only, one second, 200 or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from policy.errors import CellgateError
from simulation.objects.fields import Object
from simulation.objects.pods import all_containers


class ExtenderError(CellgateError):
    """A call failed, or the extender answered with an Error: the pod is tried again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderConfig:
    """The extender section of a scheduler configuration."""

    url: str
    """What the verbs are appended to, e.g. `http://127.0.0.1:9096/v1/extender`."""
    managed_resources: tuple[str, ...] = ("nvidia.com/gpu",)
    timeout_seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The nodes that are left, and why the others are not."""

    nodes: Sequence[str]
    failed: Mapping[str, str]


class Extender:
    """Asks one extender."""

    def __init__(self, settings: ExtenderConfig, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._session = session

    def manages(self, pod: Object) -> bool:
        """Whether a pod asks for a resource that makes the extender interested."""
        asked = [
            name
            for container in all_containers(pod)
            for amounts in (container.get("resources") or {}).values()
            for name in amounts
        ]
        return any(name in self._settings.managed_resources for name in asked)

    async def filter(self, pod: Object, nodes: Sequence[str]) -> Filtered:
        """Which of the candidate nodes the pod may go to."""
        answer = await self._call("filter", _arguments(pod, nodes))
        left = answer.get("NodeNames") or []
        if unknown := [name for name in left if name not in nodes]:
            raise ExtenderError(f"the extender returned nodes that were not offered: {unknown}")
        failed = answer.get("FailedNodes") or {}
        return Filtered(
            nodes=left, failed={**failed, **(answer.get("FailedAndUnresolvableNodes") or {})}
        )

    async def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        """How good each node is; nothing is known when the call fails, as in kube-scheduler."""
        try:
            answer = await self._post("prioritize", _arguments(pod, nodes))
            return {one["Host"]: int(one["Score"]) for one in answer}
        except (ExtenderError, KeyError, TypeError, ValueError):
            return {}

    async def bind(self, pod: Object, node: str) -> None:
        """Let the extender bind the pod."""
        metadata = pod["metadata"]
        pod_names = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"]}
        await self._call("bind", {**pod_names, "PodUID": metadata["uid"], "Node": node})

    async def _call(self, verb: str, arguments: Object) -> Object:
        answer = await self._post(verb, arguments)
        if not isinstance(answer, dict):
            raise ExtenderError(f"{verb} did not answer with an object")
        if answer.get("Error"):
            raise ExtenderError(str(answer["Error"]))
        return answer

    async def _post(self, verb: str, arguments: Object) -> Any:  # noqa: ANN401 - foreign JSON
        url = f"{self._settings.url.rstrip('/')}/{verb}"
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(arguments),
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout_seconds),
            ) as response:
                if response.status != 200:
                    message = f"failed {verb} with extender at URL {url}, code {response.status}"
                    raise ExtenderError(message)
                return orjson.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            # The type only: a message that varies would make every retry a new condition.
            raise ExtenderError(f"failed {verb} at URL {url}: {type(exc).__name__}") from exc


def _arguments(pod: Object, nodes: Sequence[str]) -> Object:
    bare = {name: pod.get(name) for name in ("metadata", "spec", "status")}
    return {"Pod": bare, "Nodes": None, "NodeNames": list(nodes)}
