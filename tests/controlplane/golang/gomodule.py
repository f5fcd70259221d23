"""The Go module that makes Kubernetes' programs buildable: text in, text out, no IO.

Kubernetes requires its own staging modules (k8s.io/api and some thirty others) at v0.0.0 and
replaces them by folders of its tree. As a dependency those replaces are ignored, so the wrapper
states them itself: v0.0.0 becomes v0.<minor>.<patch>. The names are read from the go.mod of the
version asked for, because the set grows (29 in 1.34 and 1.35, 31 since 1.36).

There is no go.sum in this repository: every version of every dependency is fixed by Kubernetes'
own go.mod, which needs nothing "latest", and the go command checks the sums against its
checksum database. A committed go.sum would serve one Kubernetes version only.
"""

import re
from dataclasses import dataclass
from typing import Self

KUBERNETES_MODULE = "k8s.io/kubernetes"
OLDEST_MINOR = 34

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
# Exactly v0.0.0: k8s.io/utils has a pseudo-version (v0.0.0-2026...), which is a real one.
_STAGING = re.compile(r"^\s*(?:require\s+)?(k8s\.io/[\w.-]+) v0\.0\.0(?:\s|$)", re.MULTILINE)
# Language version and run-time defaults must be those that upstream ships with.
_INHERITED = re.compile(r"^(?:go|godebug) .+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KubernetesVersion:
    """A released Kubernetes, such as 1.37.1."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1.37.1` or `v1.37.1`; ValueError says what is wrong with anything else."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"Kubernetes version {text!r} is not of the form 1.37.1")
        version = cls(*(int(number) for number in match.groups()))
        if version.major != 1 or version.minor < OLDEST_MINOR:
            raise ValueError(
                f"Kubernetes {version} is too old: 1.{OLDEST_MINOR}.0 or later is needed"
            )
        return version

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def staging(self) -> str:
        """The version under which the staging modules of this release are published."""
        return f"v0.{self.minor}.{self.patch}"


def staging_modules(upstream_go_mod: str) -> list[str]:
    """Name the modules that Kubernetes requires at the placeholder version, sorted."""
    return sorted(set(_STAGING.findall(upstream_go_mod)))


def build_go_mod(version: KubernetesVersion, upstream_go_mod: str) -> str:
    """Write the wrapper's go.mod from the go.mod of that Kubernetes release."""
    replaces = [
        f"\t{module} => {module} {version.staging}" for module in staging_modules(upstream_go_mod)
    ]
    return "\n".join(
        [
            "module controlplane",
            "",
            *_INHERITED.findall(upstream_go_mod),
            "",
            f"require {KUBERNETES_MODULE} v{version}",
            "",
            "replace (",
            *replaces,
            ")",
            "",
        ]
    )


def build_ldflags(version: KubernetesVersion) -> str:
    """Linker flags that strip the program and make it report its version.

    Without them /version says v0.0.0-master, and kubectl warns about skew.
    """
    values = {
        "gitVersion": f"v{version}",
        "gitMajor": str(version.major),
        "gitMinor": str(version.minor),
        "gitTreeState": "archive",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [
        f"-X {package}.{key}={value}" for package in packages for key, value in values.items()
    ]
    return " ".join(["-s", "-w", *stamps])
