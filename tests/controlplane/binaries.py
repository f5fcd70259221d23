"""The control plane's programs, built once per Kubernetes version into a per-user cache.

    python -m tests.controlplane.binaries [--kubernetes 1.35.8]

builds what is missing and prints the folder. Each program is built aside and renamed into place,
under a lock per version, so two checkouts may ask at once and an interrupted build goes on where
it stopped. A cache that is complete needs no Go. kwok carries its version in its file name,
because it moves independently of Kubernetes.
"""

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.golang.gobuild import (
    KWOK_VERSION,
    MINIMUM_GO,
    GoError,
    GoWorkspace,
    NoGoError,
    find_go,
)
from tests.controlplane.golang.gomodule import KubernetesVersion

DEFAULT_KUBERNETES = "1.37.1"
KWOK = f"kwok-{KWOK_VERSION}"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl", KWOK)

_LOCK_POLL_SECONDS = 1.0
_LOCK_REPORT_SECONDS = 30.0

Say = Callable[[str], None]


class BinariesError(Exception):
    """The programs are not there and cannot be built; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The folder that holds the programs of one Kubernetes version."""

    version: KubernetesVersion
    directory: Path

    @property
    def has_pod_groups(self) -> bool:
        """Whether this version has native PodGroups, behind their feature gate."""
        return tuple(map(int, str(self.version).lstrip("v").split(".")[:2])) >= (1, 37)

    def path(self, program: str) -> Path:
        """Where that program is, built or not."""
        return self.directory / program

    def missing(self) -> list[str]:
        """Name the programs that are not there yet."""
        return [name for name in PROGRAMS if not os.access(self.path(name), os.X_OK)]


def requested_kubernetes() -> str:
    """The version that the environment asks for (`make e2e KUBERNETES=...`), or the default."""
    return os.environ.get("KUBERNETES") or DEFAULT_KUBERNETES


def say_on_stderr(line: str) -> None:
    """Show a line of progress."""
    print(line, file=sys.stderr, flush=True)


def find_or_build(kubernetes: str | None = None, *, say: Say = say_on_stderr) -> Binaries:
    """Return the programs of a version, building those that are missing.

    Takes milliseconds when all are there. Raises BinariesError; what was built before stays.
    """
    try:
        version = KubernetesVersion.parse(kubernetes or requested_kubernetes())
    except ValueError as error:
        raise BinariesError(str(error)) from error
    binaries = Binaries(version, cache_directory() / str(version))
    if binaries.missing():
        _build_missing(binaries, say)
    return binaries


def cache_directory() -> Path:
    """The folder for all versions: under XDG_CACHE_HOME, shared by all checkouts of a user."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "cellgate" / "controlplane"


def _build_missing(binaries: Binaries, say: Say) -> None:
    try:
        go = find_go()
        binaries.directory.mkdir(parents=True, exist_ok=True)
        with _exclusive(binaries.directory / ".lock", say), _workspace(binaries, go, say) as work:
            # Another checkout may have built some or all of them while this one waited.
            if missing := binaries.missing():
                _build(missing, binaries, work)
    except (GoError, OSError) as error:
        raise BinariesError(_explain(error, binaries)) from error


def _build(missing: Sequence[str], binaries: Binaries, work: GoWorkspace) -> None:
    started = time.monotonic()
    work.say(
        f"building the Kubernetes {binaries.version} control plane into {binaries.directory}: "
        "about ten minutes on two cores, once per version"
    )
    work.prepare(binaries.version)
    for number, name in enumerate(missing, start=1):
        elapsed = time.monotonic() - started
        work.say(f"[{elapsed:4.0f} s] building {name} ({number} of {len(missing)})")
        built = work.install_kwok() if name == KWOK else work.build(name, binaries.version)
        built.replace(binaries.path(name))
    work.say(f"[{time.monotonic() - started:4.0f} s] all programs built")


@contextlib.contextmanager
def _workspace(binaries: Binaries, go: str, say: Say) -> Iterator[GoWorkspace]:
    # On the cache's own file system, so that a finished program is renamed and never half there.
    prefix = ".building-"
    for left_by_a_killed_build in binaries.directory.glob(f"{prefix}*"):
        shutil.rmtree(left_by_a_killed_build, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=binaries.directory) as directory:
        log_path = binaries.directory / "build.log"
        log_path.unlink(missing_ok=True)
        yield GoWorkspace(go=go, directory=Path(directory), log_path=log_path, say=say)


@contextlib.contextmanager
def _exclusive(path: Path, say: Say) -> Iterator[None]:
    """Hold a file lock; say now and then that another process has it."""
    reported = -_LOCK_REPORT_SECONDS
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - reported >= _LOCK_REPORT_SECONDS:
                    say("another build of this version is under way, waiting for it")
                    reported = time.monotonic()
                time.sleep(_LOCK_POLL_SECONDS)
        yield


def _explain(error: Exception, binaries: Binaries) -> str:
    text = f"no Kubernetes {binaries.version} control plane: {error}"
    if isinstance(error, NoGoError):
        names = ", ".join(binaries.missing())
        text += f"; install Go {MINIMUM_GO} or later, or put {names} into {binaries.directory}"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, print the folder, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.binaries")
    parser.add_argument("--kubernetes", metavar="VERSION", default=requested_kubernetes())
    options = parser.parse_args(arguments)
    try:
        print(find_or_build(options.kubernetes).directory)
    except BinariesError as error:
        say_on_stderr(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
