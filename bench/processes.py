"""Processes under measurement: the CPU and memory they used, and how to start and ask one."""

import http.client
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

_TICK: Final = os.sysconf("SC_CLK_TCK")
_START_SECONDS: Final = 120.0


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _memory_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field}")


class Measured:
    """A Python module as a process that listens on a port of its own."""

    def __init__(self, module: str, *arguments: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.began = time.perf_counter()
        command = [sys.executable, "-m", module, *arguments, str(self.port)]
        self._process = subprocess.Popen(command)  # noqa: S603 - our own modules
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    def post(self, path: str, body: bytes) -> bytes:
        """Ask over a connection that is kept."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._connection.request("POST", path, body, {"Content-Type": "application/json"})
        return self._connection.getresponse().read()

    def first_answer(self, path: str, body: bytes) -> float:
        """Seconds from the start of the process to its first answer that is not an error."""
        while time.perf_counter() < self.began + _START_SECONDS:
            try:
                answer = orjson.loads(self.post(path, body))
            except (OSError, http.client.HTTPException):
                self._connection = None
            else:
                if not answer.get("Error"):
                    return time.perf_counter() - self.began
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("the process did not answer")

    @property
    def cpu_seconds(self) -> float:
        """CPU time used so far."""
        return cpu_seconds(self._process.pid)

    @property
    def memory_mb(self) -> float:
        """Memory in use now."""
        return _memory_mb(self._process.pid, "VmRSS:")

    @property
    def peak_memory_mb(self) -> float:
        """The most memory that was ever in use."""
        return _memory_mb(self._process.pid, "VmHWM:")
