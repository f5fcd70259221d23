"""Running the built kubectl: a command line in, its output out, nothing left running."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import processes


@dataclass(frozen=True, slots=True, kw_only=True)
class KubectlResult:
    """How one command ended."""

    returncode: int
    stdout: str
    stderr: str


class KubectlError(Exception):
    """kubectl ended with an exit code other than zero."""

    def __init__(self, arguments: Sequence[str], result: KubectlResult) -> None:
        self.result = result
        super().__init__(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")


async def run_kubectl(
    program: Path,
    arguments: Sequence[str],
    *,
    kubeconfig: Path,
    stdin: str | None = None,
    deadline_seconds: float = 60,
) -> KubectlResult:
    """Run one command to its end; TimeoutError kills it."""
    # kubectl caches discovery under HOME: beside the kubeconfig it goes with the control plane.
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}
    process = await asyncio.create_subprocess_exec(
        *processes.tie_to_this_process([str(program), *arguments]),
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        async with asyncio.timeout(deadline_seconds):
            out, err = await process.communicate(None if stdin is None else stdin.encode())
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    code = process.returncode or 0
    return KubectlResult(returncode=code, stdout=out.decode(), stderr=err.decode())
