"""PgBouncer in transaction mode before a server, for a test; skipped where it is not installed."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.support.state.stock_postgres import open_folder, unprivileged

_PLACES = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
_START_SECONDS = 10


@contextlib.contextmanager
def pgbouncer(url: str, *, settings: str = "") -> Iterator[str]:
    """The URL of the same database by way of PgBouncer."""
    program = shutil.which("pgbouncer", path=_PLACES)
    if program is None:
        pytest.skip("no PgBouncer: install Debian's package pgbouncer")
    with open_folder() as folder:
        port = _free_port()
        config = folder / "pgbouncer.ini"
        config.write_text(_configuration(url, folder=folder, port=port) + settings)
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [program, config], stdout=log, stderr=log, cwd=folder, **unprivileged()
            )
        try:
            _wait_for(port, process, folder / "log")
            name = urlsplit(url).path.removeprefix("/")
            yield f"postgresql://cellgate@127.0.0.1:{port}/{name}"
        finally:
            process.terminate()
            process.wait(10)


def _configuration(url: str, *, folder: Path, port: int) -> str:
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    server = {
        "host": query.get("host", [parts.hostname or ""])[0],
        "port": query.get("port", [str(parts.port or 5432)])[0],
        "user": parts.username,
        "password": unquote(parts.password or ""),
    }
    where = " ".join(f"{name}={value}" for name, value in server.items() if value)
    users = folder / "users"
    users.write_text('"cellgate" ""\n')
    return f"""
[databases]
{parts.path.removeprefix("/")} = {where}
[pgbouncer]
pool_mode = transaction
default_pool_size = 3
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
auth_file = {users}
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(log.read_text())
