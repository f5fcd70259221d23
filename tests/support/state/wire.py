"""The way to a server, which a test can break: cut, hung, slow, or leading nowhere."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

_CHUNK_BYTES = 64 * 1024


class Wire:
    """A loopback port whose connections go to a server, as well as the test lets them."""

    def __init__(self, url: str) -> None:
        """`url` is that of a PostgreSQL; `self.url` leads there through the wire."""
        self._target = urlsplit(url)
        self._query = {key: values[0] for key, values in parse_qs(self._target.query).items()}
        self._is_refusing = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._delay_seconds = 0.0
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        user = self._target.netloc.rpartition("@")[0]
        netloc = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
        self.url = self._target._replace(netloc=netloc, query="").geturl()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut(self) -> None:
        """End every connection as if the network had."""
        for connection in self._connections:
            connection.cancel()

    def refuse(self) -> None:
        """Refuse new connections, and cut open ones."""
        self._is_refusing = True
        self.cut()

    def hang(self) -> None:
        """Keep connections and accept new ones, but let nothing through."""
        self._flows.clear()

    def slow_down(self, seconds: float) -> None:
        """Let everything that the client sends arrive so much later: each statement, that is."""
        self._delay_seconds = seconds

    def mend(self) -> None:
        """Let everything through again."""
        self._is_refusing = False
        self._delay_seconds = 0.0
        self._flows.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._carry(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # A task that is cancelled before its first step never gets to close anything.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            from_server, to_server = await self._connect()
            try:
                async with asyncio.TaskGroup() as both_ways:
                    both_ways.create_task(self._pump(reader, to_server, is_request=True))
                    both_ways.create_task(self._pump(from_server, writer, is_request=False))
            finally:
                to_server.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if folder := self._query.get("host"):
            return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{self._query['port']}")
        return await asyncio.open_connection(self._target.hostname, self._target.port)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if is_request and self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
