"""The processes of one control plane: started one by one, ended together, logs side by side."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.controlplane.processes import ChildProcess


class ProcessGroup:
    """Children in the order of their start, each with a log in the group's folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._members: list[ChildProcess] = []
        self._started_count = 0

    def __iter__(self) -> Iterator[ChildProcess]:
        return iter(self._members)

    def named(self, name: str) -> ChildProcess:
        """Return the first process of that name."""
        return next(process for process in self if process.name == name)

    def start(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None
    ) -> ChildProcess:
        """Start a process and take it into the group."""
        log_path = self._directory / f"{self._started_count:02}-{name}.log"
        self._started_count += 1
        process = ChildProcess(name, argv, log_path=log_path, env=env, cwd=cwd or self._directory)
        self._members.append(process)
        process.start()
        return process

    async def stop(self, *, grace_seconds: float) -> None:
        """End every process, the last one first, and forget them; their logs stay."""
        for process in reversed(self._members):
            await process.stop(grace_seconds=grace_seconds)
        self._members.clear()

    def log_tails(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every process, by file name of its log."""
        return {process.log_path.name: process.tail(lines) for process in self}

    def collect_logs(self, destination: Path) -> None:
        """Copy all logs, those of ended processes too, into a folder."""
        destination.mkdir(parents=True, exist_ok=True)
        for log_path in self._directory.glob("*.log"):
            shutil.copy(log_path, destination)
