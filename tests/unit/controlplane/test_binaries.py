"""The programs' cache and the wrapper module, with a stand-in for the go command."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.golang import gomodule
from tests.controlplane.golang.gomodule import KubernetesVersion

UPSTREAM_GO_MOD = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/kylelemons/godebug v1.1.0 // indirect
\tk8s.io/klog/v2 v2.140.0
\tk8s.io/utils v0.0.0-20260626114624-be93311217bd
\tk8s.io/streaming v0.0.0
\tk8s.io/api v0.0.0
\tk8s.io/sample-apiserver v0.0.0 // indirect
)

replace k8s.io/api => ./staging/src/k8s.io/api
"""

# Answers `go list`, and "builds" whatever follows -o or, for kwok, GOBIN.
FAKE_GO = """\
#!/bin/sh
case "$1" in
list) if [ "$3" = -f ]; then echo "$FAKE_UPSTREAM"; fi ;;
build) while [ "$1" != -o ]; do shift; done
  mkdir -p "$(dirname "$2")"; echo "$CGO_ENABLED" > "$2"; chmod +x "$2" ;;
install) echo kwok > "$GOBIN/kwok"; chmod +x "$GOBIN/kwok" ;;
esac
"""
FAILING_GO = "#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0' >&2\nexit 1\n"

InstallGo = Callable[[str], None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no go command."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("KUBERNETES", raising=False)
    return tmp_path / "cache" / "cellgate" / "controlplane"


@pytest.fixture
def install_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallGo:
    """Put a script in the place of the go command."""

    def install(script: str) -> None:
        go = tmp_path / "bin" / "go"
        go.parent.mkdir(exist_ok=True)
        go.write_text(script)
        go.chmod(stat.S_IRWXU)
        upstream = tmp_path / "upstream.mod"
        upstream.write_text(UPSTREAM_GO_MOD)
        monkeypatch.setenv("FAKE_UPSTREAM", str(upstream))
        monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.defpath}")

    return install


@pytest.mark.parametrize(
    ("text", "staging"), [("1.37.1", "v0.37.1"), ("v1.35.8", "v0.35.8"), ("1.34.11", "v0.34.11")]
)
def test_staging_modules_are_published_under_the_version_of_the_release(
    text: str, staging: str
) -> None:
    assert KubernetesVersion.parse(text).staging == staging


@pytest.mark.parametrize("text", ["", "1.37", "latest", "1.33.5", "2.0.0", "1.37.1-rc.1"])
def test_a_version_that_cannot_be_built_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Kubernetes"):
        KubernetesVersion.parse(text)


def test_only_placeholder_requirements_are_replaced() -> None:
    assert gomodule.staging_modules(UPSTREAM_GO_MOD) == [
        "k8s.io/api",
        "k8s.io/sample-apiserver",
        "k8s.io/streaming",
    ]


def test_go_mod_states_the_replaces_and_inherits_the_language_version() -> None:
    assert gomodule.build_go_mod(KubernetesVersion.parse("1.37.1"), UPSTREAM_GO_MOD) == (
        "module controlplane\n"
        "\n"
        "go 1.26.0\n"
        "godebug default=go1.26\n"
        "\n"
        "require k8s.io/kubernetes v1.37.1\n"
        "\n"
        "replace (\n"
        "\tk8s.io/api => k8s.io/api v0.37.1\n"
        "\tk8s.io/sample-apiserver => k8s.io/sample-apiserver v0.37.1\n"
        "\tk8s.io/streaming => k8s.io/streaming v0.37.1\n"
        ")\n"
    )


def test_programs_report_the_version_they_were_built_from() -> None:
    flags = gomodule.build_ldflags(KubernetesVersion.parse("1.35.8"))
    assert flags.startswith("-s -w ")
    assert "-X k8s.io/component-base/version.gitVersion=v1.35.8" in flags
    assert "-X k8s.io/component-base/version.gitMinor=35" in flags


def test_without_go_one_line_says_what_to_do(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert binaries.main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "no Kubernetes 1.37.1 control plane: there is no Go toolchain (no command `go` on PATH); "
        "install Go 1.26 or later, or put etcd, kube-apiserver, kube-scheduler, "
        f"kube-controller-manager, kubectl, kwok-0.8.0 into {cache / '1.37.1'}\n"
    )


def test_a_go_that_is_too_old_is_named_as_the_reason(
    install_go: InstallGo, capsys: pytest.CaptureFixture[str]
) -> None:
    install_go(FAILING_GO)
    assert binaries.main([]) == 2
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert "go.mod requires go >= 1.26.0" in last_line
    assert "install Go 1.26 or later" in last_line


def test_a_wrong_version_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert binaries.main(["--kubernetes", "newest"]) == 2
    assert capsys.readouterr().err == "Kubernetes version 'newest' is not of the form 1.37.1\n"


def test_all_programs_are_built_statically_and_progress_is_shown(
    cache: Path, install_go: InstallGo
) -> None:
    install_go(FAKE_GO)
    said: list[str] = []
    found = binaries.find_or_build("1.35.8", say=said.append)
    assert found.directory == cache / "1.35.8"
    assert found.missing() == []
    assert found.path("kubectl").read_text() == "0\n"
    assert sum("ten minutes" in line for line in said) == 1
    assert sum("building kube-apiserver (2 of 6)" in line for line in said) == 1
    assert {path.name for path in found.directory.iterdir()} == {
        *binaries.PROGRAMS,
        "build.log",
        ".lock",
    }


def test_a_complete_cache_needs_no_go(
    install_go: InstallGo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_go(FAKE_GO)
    built = binaries.find_or_build("1.35.8", say=lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("KUBERNETES", "1.35.8")
    said: list[str] = []
    assert binaries.find_or_build(say=said.append) == built
    assert said == []


def test_only_what_is_missing_is_built(install_go: InstallGo) -> None:
    install_go(FAKE_GO)
    built = binaries.find_or_build("1.35.8", say=lambda _: None)
    built.path("etcd").unlink()
    said: list[str] = []
    binaries.find_or_build("1.35.8", say=said.append)
    assert [line.split("] ")[1] for line in said if "(1 of" in line] == ["building etcd (1 of 1)"]
