"""A thin client of the Kubernetes API: raw JSON in, raw JSON out.

kubernetes-asyncio finds the cluster and authenticates (kubeconfig, in-cluster token, client
certificates, refreshed tokens). Its typed models are not used: decoding into them costs more than
all our decisions together.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from policy.errors import BackendError, SettingsError

Object = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Accepted instead of JSON: the metadata of the object alone."""

_CONNECT_SECONDS = 5.0
_REQUEST_SECONDS = 15.0
_READ_BUFFER_BYTES: Final = 2**21
"""Read from a connection at once: nearly every object whole."""
_HEADERS: Final = {"User-Agent": "cellgate", "Accept-Encoding": "identity"}


class KubeError(BackendError):
    """The API server refused or did not answer; `status` is 0 if no answer came."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """The object does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """A precondition failed, or the object exists already."""
        return self.status == 409

    @property
    def is_gone(self) -> bool:
        """The resource version is too old to watch from: list again."""
        return self.status == 410


class KubeClient:
    """Requests to one API server, as one identity."""

    def __init__(self, api: ApiClient, session: aiohttp.ClientSession) -> None:
        self._configuration = api.configuration
        self._server_hostname = api.rest_client.server_hostname
        self._session = session
        host = api.configuration.host
        self._proxy = api.configuration.proxy or _proxy_from_environment(host)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Send one request and return the object answered; KubeError for anything but 2xx."""
        patience = aiohttp.ClientTimeout(total=_REQUEST_SECONDS, sock_connect=_CONNECT_SECONDS)
        headers = {"Content-Type": content_type, "Accept": accept}
        async with self._send(
            method, path, query=query, body=body, headers=headers, patience=patience
        ) as response:
            answer: Object = orjson.loads(await response.read())
            return answer

    async def watch(
        self, path: str, *, query: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[Object]:
        """Yield watch events until the server ends the stream."""
        patience = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=idle_seconds
        )
        parameters, headers = {**query, "watch": "true"}, {"Accept": JSON}
        async with self._send(
            "GET", path, query=parameters, headers=headers, patience=patience
        ) as response:
            async for line in _lines(response.content):
                yield orjson.loads(line)

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        patience: aiohttp.ClientTimeout,
        body: Object | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method,
                f"{self._configuration.host}{path}",
                params=query,
                data=None if body is None else orjson.dumps(body),
                headers={**headers, **await self._credentials()},
                timeout=patience,
                proxy=self._proxy,
                server_hostname=self._server_hostname,
            ) as response:
                if response.status >= 300:
                    raise _refusal(method, path, response.status, await response.read())
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError) as exc:
            raise KubeError(f"{method} {path}: {_reason(exc)}") from exc

    async def _credentials(self) -> dict[str, str]:
        settings = await self._configuration.auth_settings()
        return {setting["key"]: setting["value"] for setting in settings.values()}


@asynccontextmanager
async def connect(kubeconfig: str | None) -> AsyncIterator[KubeClient]:
    """Connect by the kubeconfig, or as the pod we run in; SettingsError if no server answers."""
    configuration = Configuration()
    await _load(configuration, kubeconfig)
    async with ApiClient(configuration) as api, open_session(api) as session:
        client = KubeClient(api, session)
        try:
            await client.request("GET", "/version")
        except KubeError as exc:
            where = kubeconfig or "the in-cluster configuration"
            raise SettingsError(
                f"cannot reach the cluster of {where} at {configuration.host} ({exc}); "
                "start it, or name another one with --kubeconfig"
            ) from exc
        yield client


def open_session(api: ApiClient) -> aiohttp.ClientSession:
    """Use the library's connections and certificates, but not its session.

    Its session reads ~/.netrc and the environment for every request, in a thread, which costs more
    than the request itself.
    """
    return aiohttp.ClientSession(
        connector=api.rest_client.pool_manager.connector,
        connector_owner=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        read_bufsize=_READ_BUFFER_BYTES,
    )


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines of any length, which `content` itself does not.

    One line of a watch is a whole object. etcd stores 1.5 MB, and the API server writes each `<`
    as six letters: a user who creates such a pod must not end our watch.
    """
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        head, *others = chunk.split(b"\n")
        parts.append(head)
        for other in others:
            yield b"".join(parts)
            parts = [other]
    if any(parts):
        yield b"".join(parts)


def _proxy_from_environment(url: str | None) -> str | None:
    """The proxy for an API server, if HTTPS_PROXY or a similar variable names one."""
    parts = urlsplit(url or "")
    if proxy_bypass(parts.netloc):
        return None
    return getproxies().get(parts.scheme)


async def _load(configuration: Configuration, kubeconfig: str | None) -> None:
    try:
        if kubeconfig is None:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call] # of the library
            return
        if not await asyncio.to_thread(Path(kubeconfig).is_file):
            raise SettingsError(f"there is no kubeconfig {kubeconfig}; check --kubeconfig")
        await load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    except ConfigException as exc:
        where = "in-cluster configuration" if kubeconfig is None else f"kubeconfig {kubeconfig}"
        raise SettingsError(f"cannot use the {where}: {exc}; give --kubeconfig FILE") from exc
    except SettingsError:
        raise
    except Exception as exc:
        # kubernetes-asyncio does not check the file it reads, so any error may come.
        raise SettingsError(f"{kubeconfig} is not a kubeconfig; check --kubeconfig") from exc


def _refusal(method: str, path: str, status: int, body: bytes) -> KubeError:
    """Build the error from the Status object that the API server sends with a refusal."""
    try:
        message = orjson.loads(body)["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = body[:200].decode(errors="replace")
    return KubeError(f"{method} {path}: {status} {message}", status=status)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
