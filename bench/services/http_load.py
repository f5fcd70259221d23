"""A small HTTP client that costs little: what is measured is the server.

HTTP/1.1 with keep-alive over TLS, one request at a time on each connection, answers with a
Content-Length: as a Go client and our services speak.
"""

import asyncio
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Connection:
    """One connection to one server."""

    host: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, address: str, tls: ssl.SSLContext | None) -> "Connection":
        """Connect to HOST:PORT."""
        host, port = address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
        return cls(address, reader, writer)

    async def post(self, path: str, body: bytes) -> float:
        """Send a request; return the seconds until the whole answer was there."""
        head = f"POST {path}?timeout=3s HTTP/1.1\r\nHost: {self.host}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        began = time.perf_counter()
        self.writer.write(head.encode() + body)
        status, answer = await self._read()
        seconds = time.perf_counter() - began
        if status != 200 or b'"allowed":true' not in answer:
            raise RuntimeError(f"{status}: {answer[:300]!r}")
        return seconds

    async def get_status(self, path: str) -> int:
        """Ask for a page; return how that went."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        status, _ = await self._read()
        return status

    async def _read(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(lines[0].split(" ")[1]), body

    def close(self) -> None:
        """End it at once."""
        self.writer.transport.abort()


async def send_at_rate(
    connections: Sequence[Connection], path: str, bodies: Iterable[bytes], *, rate: int
) -> list[float]:
    """Send bodies at a fixed rate, also while answers are late; return the seconds each took.

    A body without a free connection waits, and its time counts from when it was due, so that a
    server that falls behind does not look better because it is asked less.
    """
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    times: list[float] = []

    async def send(body: bytes, due: float) -> None:
        connection = await free.get()
        try:
            await connection.post(path, body)
        finally:
            free.put_nowait(connection)
        times.append(time.perf_counter() - due)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, body in enumerate(bodies):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(send(body, time.perf_counter()))
    return times
