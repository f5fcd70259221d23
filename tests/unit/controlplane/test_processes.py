"""Child processes: their end, their signals, and the end of their parent."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until

PARENT = """
import sys, time, pathlib
from tests.controlplane.processes import ChildProcess
child = ChildProcess("sleep", ["sleep", "60"], log_path=pathlib.Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
time.sleep(60)
"""


def a_child(tmp_path: Path, script: str) -> ChildProcess:
    """A shell script as a child process."""
    return ChildProcess("script", ["sh", "-c", script], log_path=tmp_path / "script.log")


async def until_logged(child: ChildProcess, text: str) -> None:
    """Wait for a word in its log."""

    async def is_logged() -> bool:
        return text in child.tail()

    await poll_until(is_logged, deadline_seconds=5, poll_seconds=0.01, explain=child.tail)


def process_state(pid: int) -> str:
    """The letter the kernel gives a process: T is paused, Z has ended, empty is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def test_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    child = a_child(tmp_path, "echo one; echo two; echo three >&2; exit 3")
    child.start()
    assert await child.wait(deadline_seconds=5) == 3
    assert not child.is_running()
    assert child.tail(2) == "two\nthree"


async def test_stop_ends_a_process_that_listens(tmp_path: Path) -> None:
    child = a_child(tmp_path, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")
    child.start()
    await until_logged(child, "up")
    await child.stop()
    assert child.returncode == 7


async def test_stop_kills_a_process_that_does_not_listen(tmp_path: Path) -> None:
    child = a_child(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.01; done")
    child.start()
    await until_logged(child, "up")
    await child.stop(grace_seconds=0.1)
    assert child.returncode == -signal.SIGKILL


async def test_a_paused_process_can_be_resumed_and_stopped(tmp_path: Path) -> None:
    child = a_child(tmp_path, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")
    child.start()
    await until_logged(child, "up")

    async def is_paused() -> bool:
        return process_state(child.pid) == "T"

    child.pause()
    await poll_until(is_paused, deadline_seconds=5, explain=lambda: "not paused")
    child.resume()
    assert child.is_running()
    child.pause()
    await child.stop()
    assert child.returncode == 7


async def test_a_killed_process_can_be_started_again_with_its_log_kept(tmp_path: Path) -> None:
    child = a_child(tmp_path, "echo up $$; exec sleep 60")
    child.start()
    await until_logged(child, f"up {child.pid}")
    first = child.pid
    child.kill()
    await child.restart()
    await until_logged(child, f"up {child.pid}")
    assert f"up {first}" in child.tail()
    await child.stop()


def test_a_process_is_started_once(tmp_path: Path) -> None:
    child = a_child(tmp_path, "exec sleep 60")
    child.start()
    with pytest.raises(RuntimeError, match="already running"):
        child.start()
    child.kill()


async def test_a_program_that_does_not_exist_is_named_in_the_log(tmp_path: Path) -> None:
    child = ChildProcess("none", ["/no/such/program"], log_path=tmp_path / "none.log")
    child.start()
    assert await child.wait(deadline_seconds=5) == 1
    assert child.tail() == "launcher: /no/such/program: No such file or directory"


async def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        str(tmp_path / "sleep.log"),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    child_pid = int(await parent.stdout.readline())
    assert process_state(child_pid) in "RSD"
    parent.kill()
    await parent.wait()

    async def has_ended() -> bool:
        return process_state(child_pid) in ("", "Z")

    await poll_until(has_ended, deadline_seconds=5, explain=lambda: "the child lives on")
