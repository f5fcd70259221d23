"""The forwarder against servers on loopback whose readiness the test decides."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.ports import LOOPBACK

POLL_SECONDS = 0.02


@dataclass
class NamedServer:
    """Greets every connection with its name, then echoes; ready as told."""

    name: str
    is_ready: bool = True
    is_leader: bool = False
    port: int = 0
    ready_port: int = 0
    connections: set[asyncio.StreamWriter] = field(default_factory=set)

    def backend(self, path: str = "/readyz") -> Backend:
        return Backend(self.port, f"http://{LOOPBACK}:{self.ready_port}{path}")

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        with contextlib.suppress(ConnectionError):
            writer.write(f"{self.name}\n".encode())
            while data := await reader.read(1024):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def answer_probe(self, request: web.Request) -> web.Response:
        is_good = self.is_leader if request.path == "/leader" else self.is_ready
        return web.Response(status=200 if is_good else 503)


@contextlib.asynccontextmanager
async def serving(
    name: str, *, is_ready: bool = True, is_leader: bool = False
) -> AsyncIterator[NamedServer]:
    """Run a named server while entered."""
    server = NamedServer(name, is_ready=is_ready, is_leader=is_leader)
    app = web.Application()
    app.router.add_get("/{any:.*}", server.answer_probe)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    server.ready_port = runner.addresses[0][1]
    listener = await asyncio.start_server(server.greet, LOOPBACK, 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for writer in server.connections:
            writer.transport.abort()
        await runner.cleanup()


async def greeting(forwarder: Forwarder) -> str:
    """Who answers a new connection; empty if it is closed at once."""
    reader, writer = await asyncio.open_connection(LOOPBACK, forwarder.port)
    try:
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_connections_go_to_ready_backends_in_turn() -> None:
    async with serving("a") as a, serving("b", is_ready=False) as b, serving("c") as c:
        backends = [a.backend(), b.backend(), c.backend()]
        async with Forwarder(backends, poll_seconds=POLL_SECONDS) as forwarder:
            assert [await greeting(forwarder) for _ in range(4)] == ["a", "c", "a", "c"]


async def test_readiness_is_followed_both_ways() -> None:
    async with serving("a") as a, serving("b", is_ready=False) as b:
        backends = [a.backend(), b.backend()]
        async with Forwarder(backends, poll_seconds=POLL_SECONDS) as forwarder:
            assert await greeting(forwarder) == "a"
            a.is_ready = False
            await forwarder.wait_ready(0)
            b.is_ready = True
            await forwarder.wait_ready(1)
            assert forwarder.ready_backends() == [b.backend()]
            assert await greeting(forwarder) == "b"


async def test_a_connection_is_closed_at_once_when_nobody_is_ready() -> None:
    nobody = Backend(1, f"http://{LOOPBACK}:1/readyz")
    async with Forwarder([nobody], poll_seconds=POLL_SECONDS) as forwarder:
        assert await greeting(forwarder) == ""


async def test_another_path_selects_the_leader() -> None:
    async with serving("a") as a, serving("b", is_leader=True) as b:
        backends = [a.backend("/leader"), b.backend("/leader")]
        async with Forwarder(backends, poll_seconds=POLL_SECONDS) as forwarder:
            assert [await greeting(forwarder) for _ in range(2)] == ["b", "b"]


async def test_a_backend_that_refuses_is_passed_over() -> None:
    async with serving("a") as a, serving("b") as b:
        nobody = Backend(1, a.backend().ready_url)
        async with Forwarder([nobody, b.backend()], poll_seconds=POLL_SECONDS) as forwarder:
            assert await greeting(forwarder) == "b"


async def test_bytes_and_their_end_pass_both_ways() -> None:
    async with serving("a") as a, Forwarder([a.backend()], poll_seconds=POLL_SECONDS) as forwarder:
        reader, writer = await asyncio.open_connection(LOOPBACK, forwarder.port)
        sent = b"x" * 300_000
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == b"a\n" + sent
        writer.close()
        await writer.wait_closed()


async def test_an_open_connection_survives_unreadiness() -> None:
    async with serving("a") as a, Forwarder([a.backend()], poll_seconds=POLL_SECONDS) as forwarder:
        reader, writer = await asyncio.open_connection(LOOPBACK, forwarder.port)
        assert await reader.readline() == b"a\n"
        a.is_ready = False
        await forwarder.wait_ready(0)
        writer.write(b"still here\n")
        assert await reader.readline() == b"still here\n"
        writer.close()
        await writer.wait_closed()


async def test_stop_cuts_connections_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with serving("a") as a:
        forwarder = Forwarder([a.backend()], poll_seconds=POLL_SECONDS)
        await forwarder.start()
        reader, writer = await asyncio.open_connection(LOOPBACK, forwarder.port)
        assert await reader.readline() == b"a\n"
        await forwarder.stop()
        assert await reader.read() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection(LOOPBACK, forwarder.port)
        writer.close()
        await writer.wait_closed()
    assert asyncio.all_tasks() == before
