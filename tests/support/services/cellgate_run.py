"""`cellgate run` as a child process."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("cellgate")
ANY_PORTS = [
    "--extender-listen=127.0.0.1:0",
    "--webhook-listen=127.0.0.1:0",
    "--cluster-listen=127.0.0.1:0",
]
START_SECONDS = 60
END_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A `cellgate run` that has said where it serves."""

    process: asyncio.subprocess.Process
    banner: str

    def url(self, what: str) -> str:
        """The address that the banner gives for extender, webhook or cluster."""
        found = re.search(rf"^  {what} +(\S+)", self.banner, re.MULTILINE)
        assert found, self.banner
        return found[1]

    def children(self) -> list[int]:
        """The processes that it started."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return [int(pid) for pid in Path(path).read_text().split()]


@asynccontextmanager
async def cellgate_run(data: Path, *flags: str) -> AsyncIterator[Running]:
    """Start it and wait until its banner is complete; end it by Ctrl-C if the test did not."""
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM),
        "run",
        "--data-dir",
        str(data),
        *ANY_PORTS,
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            banner = await read_until(process, "see the Warning")
        yield Running(process=process, banner=banner)
    finally:
        if process.returncode is None:
            await interrupt(process)


async def read_until(process: asyncio.subprocess.Process, last: str) -> str:
    assert process.stdout
    lines: list[str] = []
    while not lines or last not in lines[-1]:
        line = (await process.stdout.readline()).decode()
        assert line, f"ended early: {''.join(lines)}"
        lines.append(line)
    return "".join(lines)


async def interrupt(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """Press Ctrl-C; return the exit code and what was printed meanwhile."""
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(END_SECONDS):
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()
