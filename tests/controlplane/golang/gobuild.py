"""Running the go command: find it, build one program with visible progress.

Go's settings (proxy, checksum database, caches, toolchain) are the machine's own: they come from
the environment and `go env` unchanged. Only what the result depends on is set here.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import processes
from tests.controlplane.golang import gomodule
from tests.controlplane.golang.gomodule import KubernetesVersion

MINIMUM_GO = "1.26"
KWOK_VERSION = "0.8.0"

_SOURCES = Path(__file__).with_name("go")
_KUBERNETES_COMMANDS = f"{gomodule.KUBERNETES_MODULE}/cmd"
_KWOK_COMMAND = f"sigs.k8s.io/kwok/cmd/kwok@v{KWOK_VERSION}"
_HEARTBEAT_SECONDS = 20.0


class GoError(Exception):
    """The go command failed; the message is one line for a person."""


class NoGoError(GoError):
    """There is no go command, or none that is new enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoWorkspace:
    """A throw-away folder with the wrapper module, and the log of everything go says."""

    go: str
    directory: Path
    log_path: Path
    say: Callable[[str], None]

    def prepare(self, version: KubernetesVersion) -> None:
        """Lay out the wrapper module for that version, or explain why go cannot."""
        shutil.copytree(_SOURCES, self.directory, dirs_exist_ok=True)
        go_mod = self.directory / "go.mod"
        go_mod.write_text(f"module controlplane\n\ngo {MINIMUM_GO}.0\n")
        self._check_go()
        module = f"{gomodule.KUBERNETES_MODULE}@v{version}"
        upstream = self._ask("list", "-m", "-f", "{{.GoMod}}", module)
        go_mod.write_text(gomodule.build_go_mod(version, Path(upstream).read_text()))

    def build(self, program: str, version: KubernetesVersion) -> Path:
        """Build one of Kubernetes' programs, or etcd, and return where it is."""
        package = "./etcd" if program == "etcd" else f"{_KUBERNETES_COMMANDS}/{program}"
        flags = ["-mod=mod", "-trimpath", "-ldflags", gomodule.build_ldflags(version)]
        built = self.directory / "bin" / program
        self._run(["build", *flags, "-o", str(built), package], label=program)
        return built

    def install_kwok(self) -> Path:
        """Build kwok by itself: its requirements do not go into one module with Kubernetes'."""
        bin_directory = self.directory / "bin"
        flags = ["-trimpath", "-ldflags", "-s -w"]
        self._run(["install", *flags, _KWOK_COMMAND], label="kwok", GOBIN=str(bin_directory))
        return bin_directory / "kwok"

    def _check_go(self) -> None:
        # The go command itself decides: it may fetch a newer toolchain if its settings allow.
        try:
            self._ask("list", "-m")
        except GoError as error:
            raise NoGoError(f"the Go toolchain here does not do ({error})") from error

    def _ask(self, *arguments: str) -> str:
        """Run a quick query and return its answer."""
        argv = [self.go, *arguments]
        answer = subprocess.run(
            argv, cwd=self.directory, capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
            raise GoError(f"go {' '.join(arguments)}: {lines[-1].strip()}")
        return answer.stdout.strip()

    def _run(self, arguments: Sequence[str], *, label: str, **extra_env: str) -> None:
        started = time.monotonic()
        code = self._run_with_heartbeat([self.go, *arguments], label, build_env(extra_env))
        if code != 0:
            last = (self.log_path.read_text().strip().splitlines() or ["no output"])[-1].strip()
            raise GoError(f"building {label} failed: {last}; all output is in {self.log_path}")
        self.say(f"  {label} built in {time.monotonic() - started:.0f} s")

    def _run_with_heartbeat(self, argv: list[str], label: str, env: Mapping[str, str]) -> int:
        started = time.monotonic()
        with self.log_path.open("ab") as log:
            go = subprocess.Popen(
                processes.tie_to_this_process(argv),
                cwd=self.directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        with go:
            while True:
                try:
                    return go.wait(timeout=_HEARTBEAT_SECONDS)
                except subprocess.TimeoutExpired:
                    self.say(f"  still building {label}, {time.monotonic() - started:.0f} s")


def build_env(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a build: static programs, everything else as it is."""
    return {**os.environ, "CGO_ENABLED": "0", **extra}


def find_go() -> str:
    """Return the go command, or raise NoGoError."""
    found = shutil.which("go")
    if found is None:
        raise NoGoError("there is no Go toolchain (no command `go` on PATH)")
    return found
