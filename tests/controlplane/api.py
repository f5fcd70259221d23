"""A small JSON client of the Kubernetes API: raw objects in, raw objects out, no models.

Paths are written out as the API server knows them (`/api/v1/namespaces/default/pods/x`), so a
test reads like the protocol. Every wait has a deadline and says what it last saw.
"""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import aiohttp
import orjson

from tests.controlplane.waiting import poll_until

JsonObject = dict[str, Any]
Condition = Callable[[JsonObject], bool]
PatchKind = Literal["merge", "strategic", "json", "apply"]

_PATCH_TYPES: Mapping[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30)
_SHOWN_CHARACTERS = 2000


class ApiError(Exception):
    """The API server answered with an error status."""

    def __init__(self, method: str, path: str, status: int, body: JsonObject) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{method} {path}: {status} {body.get('message', '')}")


class ApiConnection:
    """The shared connection pool to one API server; `as_bearer` gives clients for it."""

    def __init__(self, url: str, ca_path: Path) -> None:
        self.url = url
        context = ssl.create_default_context(cafile=str(ca_path))
        self._session = aiohttp.ClientSession(
            base_url=url,
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=_REQUEST_TIMEOUT,
        )

    def as_bearer(self, token: str) -> "Api":
        """Return a client that speaks with that token."""
        return Api(self._session, token)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


class Api:
    """One identity's view of the API server; raises ApiError for any status of 400 and above."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"}
        self.warnings: list[str] = []
        """What the API server warned of with its last answer, as kubectl shows it."""

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Send one request and return the decoded answer (text answers under the key "text")."""
        async with self._session.request(
            method,
            path,
            data=None if body is None else orjson.dumps(body),
            params=params,
            headers={**self._headers, "Content-Type": content_type},
        ) as response:
            answer = _decode(await response.read())
        self.warnings = [
            text.removeprefix('299 - "').removesuffix('"')
            for text in response.headers.getall("Warning", [])
        ]
        if response.status >= 400:
            raise ApiError(method, path, response.status, answer)
        return answer

    async def get(self, path: str, **params: str) -> JsonObject:
        """Read one object, or a whole list object."""
        return await self.request("GET", path, params=params)

    async def list(self, path: str, **params: str) -> list[JsonObject]:
        """Read the items of a collection; `labelSelector` and the like are given as keywords."""
        items: list[JsonObject] = (await self.get(path, **params)).get("items") or []
        return items

    async def create(self, path: str, obj: JsonObject, **params: str) -> JsonObject:
        """Post an object to its collection (or to a subresource) and return what was stored."""
        return await self.request("POST", path, obj, params=params)

    async def replace(self, path: str, obj: JsonObject) -> JsonObject:
        """Put an object in the place of the stored one."""
        return await self.request("PUT", path, obj)

    async def patch(
        self, path: str, patch: object, *, kind: PatchKind = "merge", **params: str
    ) -> JsonObject:
        """Change part of an object; `apply` needs the parameter `fieldManager`."""
        content_type = _PATCH_TYPES[kind]
        return await self.request("PATCH", path, patch, params=params, content_type=content_type)

    async def delete(self, path: str, **params: str) -> JsonObject:
        """Ask for the deletion of an object or a collection; it may take its time to go."""
        return await self.request("DELETE", path, params=params)

    async def exists(self, path: str) -> bool:
        """Tell whether there is such an object."""
        return bool(await self._get_or_empty(path))

    async def wait_until(
        self,
        path: str,
        condition: Condition,
        *,
        deadline_seconds: float = 30,
        poll_seconds: float = 0.1,
    ) -> JsonObject:
        """Return the object once it exists and the condition holds; TimeoutError shows the last."""
        seen: JsonObject = {}

        async def ask() -> JsonObject | None:
            nonlocal seen
            seen = await self._get_or_empty(path)
            return seen if seen and condition(seen) else None

        found = await poll_until(
            ask,
            deadline_seconds=deadline_seconds,
            poll_seconds=poll_seconds,
            explain=lambda: f"{path} is not as expected, last seen: {_shorten(seen)}",
        )
        return found or seen

    async def wait_gone(self, path: str, *, deadline_seconds: float = 30) -> None:
        """Return once there is no such object."""

        async def is_gone() -> bool:
            return not await self.exists(path)

        await poll_until(
            is_gone,
            deadline_seconds=deadline_seconds,
            explain=lambda: f"{path} is still there",
        )

    async def _get_or_empty(self, path: str) -> JsonObject:
        try:
            return await self.get(path)
        except ApiError as error:
            if error.status == 404:
                return {}
            raise


def _shorten(obj: JsonObject) -> str:
    return orjson.dumps(obj).decode()[:_SHOWN_CHARACTERS]


def _decode(data: bytes) -> JsonObject:
    try:
        decoded: JsonObject = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Health endpoints answer in plain text, and so do some failures.
        return {"text": data.decode(errors="replace"), "message": data.decode(errors="replace")}
    return decoded
