"""A stand-in for a Kubernetes Service: one loopback port, TCP to whichever backend is ready.

Each backend is asked for its readiness a few times a second; a new connection goes to the next
ready one in turn, or is closed at once if there is none. As with a Service, a backend that turns
unready gets no new connections and keeps those it has. Asking for a path that only a leader
answers makes this a Service for the leader.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp

from tests.controlplane.ports import LOOPBACK
from tests.controlplane.waiting import poll_until

_CHUNK_BYTES = 64 * 1024
_CONNECT_SECONDS = 2.0
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Backend:
    """A loopback port, and the URL that answers 200 while it may be used (https unverified)."""

    port: int
    ready_url: str


class Forwarder:
    """Listens while it is entered; `port` is known then."""

    def __init__(
        self, backends: Sequence[Backend], *, port: int = 0, poll_seconds: float = 0.2
    ) -> None:
        self.port = port
        self._backends = tuple(backends)
        self._poll_seconds = poll_seconds
        self._ready: set[Backend] = set()
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes: aiohttp.ClientSession | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Ask every backend once, then listen."""
        timeout = aiohttp.ClientTimeout(total=max(1.0, 2 * self._poll_seconds))
        # A connection per probe: a kept one would not notice that the process was replaced.
        connector = aiohttp.TCPConnector(ssl=False, force_close=True)
        self._probes = aiohttp.ClientSession(timeout=timeout, connector=connector)
        await asyncio.gather(*(self._probe(self._probes, backend) for backend in self._backends))
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        for backend in self._backends:
            self._keep(asyncio.create_task(self._watch(self._probes, backend)))

    async def stop(self) -> None:
        """Stop listening, cut every connection, and return when no task is left."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._probes is not None:
            await self._probes.close()

    def ready_backends(self) -> list[Backend]:
        """The backends that answered the latest probe, in the order given."""
        return [backend for backend in self._backends if backend in self._ready]

    async def wait_ready(self, count: int = 1, *, deadline_seconds: float = 10) -> None:
        """Return when exactly that many backends are ready; TimeoutError says how many are."""

        async def as_many() -> bool:
            return len(self._ready) == count

        await poll_until(
            as_many,
            deadline_seconds=deadline_seconds,
            poll_seconds=self._poll_seconds / 4,
            explain=lambda: f"{len(self._ready)} backends are ready, not {count}",
        )

    async def _watch(self, probes: aiohttp.ClientSession, backend: Backend) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            await self._probe(probes, backend)

    async def _probe(self, probes: aiohttp.ClientSession, backend: Backend) -> None:
        try:
            async with probes.get(backend.ready_url) as response:
                is_ready = response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            is_ready = False
        if is_ready:
            self._ready.add(backend)
        else:
            self._ready.discard(backend)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._keep(asyncio.create_task(self._forward(reader, writer)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_close, writer)
            upstream = await self._connect()
            if upstream is None:
                return
            upstream_reader, upstream_writer = upstream
            stack.push_async_callback(_close, upstream_writer)
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(_pump(reader, upstream_writer))
                both_ways.create_task(_pump(upstream_reader, writer))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ready = self.ready_backends()
        start = next(self._turn)
        for step in range(len(ready)):
            backend = ready[(start + step) % len(ready)]
            # One that died since its latest probe must not cost the client its connection.
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(LOOPBACK, backend.port)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end, and pass the end on; a broken peer ends both."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
        return
    writer.transport.abort()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    # A paused peer never takes what is still to be sent: it must not hold up the stop.
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    writer.transport.abort()
