"""The calls of kube-scheduler to an extender: node names only.

The timeouts are those of our manifests: a second, and longer for bind, which may be held.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from policy.errors import CellgateError
from simulation.objects.fields import Object


class ExtenderError(CellgateError):
    """A call failed, or the extender returned an Error: the pod is retried later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderConfig:
    """The extender section of a scheduler configuration."""

    url: str
    """The URL that verbs are appended to, such as `http://127.0.0.1:9096/v1/extender`."""
    timeout_seconds: float = 1.0
    bind_timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The nodes that passed the filter, and why the others did not."""

    nodes: Sequence[str]
    failed: Mapping[str, str]


class Extender:
    """A client of one extender."""

    def __init__(self, settings: ExtenderConfig, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._session = session

    async def filter(self, pod: Object, nodes: Sequence[str]) -> Filtered:
        """Return the candidate nodes that the pod may use."""
        answer = await self._call("filter", _arguments(pod, nodes))
        left = answer.get("NodeNames") or []
        if unknown := [name for name in left if name not in nodes]:
            raise ExtenderError(f"the extender returned nodes that were not offered: {unknown}")
        failed = answer.get("FailedNodes") or {}
        return Filtered(
            nodes=left, failed={**failed, **(answer.get("FailedAndUnresolvableNodes") or {})}
        )

    async def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        """Return the score of each node; empty if the call fails, as in kube-scheduler."""
        try:
            answer = await self._post("prioritize", _arguments(pod, nodes))
            return {one["Host"]: int(one["Score"]) for one in answer}
        except (ExtenderError, KeyError, TypeError, ValueError):
            return {}

    async def bind(self, pod: Object, node: str) -> None:
        """Bind the pod through the extender."""
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
        is_bind = verb == "bind"
        patience = (
            self._settings.bind_timeout_seconds if is_bind else self._settings.timeout_seconds
        )
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(arguments),
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=patience),
            ) as response:
                if response.status != 200:
                    message = f"failed {verb} with extender at URL {url}, code {response.status}"
                    raise ExtenderError(message)
                return orjson.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            # Only the type: a message that varies would change the condition at every retry.
            raise ExtenderError(f"failed {verb} at URL {url}: {type(exc).__name__}") from exc


def _arguments(pod: Object, nodes: Sequence[str]) -> Object:
    bare = {name: pod.get(name) for name in ("metadata", "spec", "status")}
    return {"Pod": bare, "Nodes": None, "NodeNames": list(nodes)}
