"""Workloads: the topmost controller of a pod, and the mark that names it on the pod.

The webhook resolves it (`kube.follow.owners`) and writes the mark; all others read the mark. The
mark is `<group>/<Kind>/<name>/<uid>`, for example `batch/Job/train/6f0c…`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from kube.values.objects import items, mapping
from kube.values.texts import parse_time

_GROUP: Final = re.compile(r"(?:[-.a-z0-9]{1,253})?")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_NAME: Final = re.compile(r"[-.a-z0-9]{1,253}")
_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCHEDULES: Final = ("Cron", "Scheduled")
"""What the names of kinds that start one workload after the other begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The object that controls pods, directly or through other objects."""

    group: str
    """The API group of its kind; empty for kinds of the core group."""
    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def reference(self) -> str:
        """The text that names it to programs, as kubectl takes it: `Job/train`."""
        return f"{self.kind}/{self.name}"

    @property
    def mark(self) -> str:
        """The text that names it on its pods."""
        return f"{self.group}/{self.kind}/{self.name}/{self.uid}"

    @property
    def is_schedule(self) -> bool:
        """Whether it only starts workloads at certain times, as a CronJob does."""
        return self.kind.startswith(_SCHEDULES)

    @classmethod
    def parse(cls, mark: str) -> Self | None:
        """Read a mark; None for one that we did not write."""
        parts = mark.split("/")
        if len(parts) != 4:
            return None
        group, kind, name, uid = parts
        found = cls(group=group, kind=kind, name=name, uid=uid)
        return found if found.is_valid else None

    @property
    def is_valid(self) -> bool:
        """Whether an API server could have stored it; a user can write any ownerReference."""
        checks = ((_GROUP, self.group), (_KIND, self.kind), (_NAME, self.name), (_UID, self.uid))
        return all(pattern.fullmatch(text) for pattern, text in checks)


class WorkloadKey(NamedTuple):
    """A workload in its namespace: two objects with the same key are the same object."""

    namespace: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLink:
    """One step of an owner chain: a controller, and the version in which it was named."""

    workload: Workload
    version: str

    def path(self, namespace: str) -> str:
        """Return the path of the object at the API server."""
        group, own = self.workload.group, self.workload
        api = f"/apis/{group}/{self.version}" if group else f"/api/{self.version}"
        return f"{api}/namespaces/{namespace}/{_plural(own.kind)}/{own.name}"


def controller_of(obj: Mapping[str, Any]) -> OwnerLink | None:
    """Return the controller of an object, None if it has none that an API server could store."""
    for reference in items(mapping(mapping(obj).get("metadata")).get("ownerReferences")):
        if reference.get("controller") is True:
            group, _, version = str(reference.get("apiVersion")).rpartition("/")
            found = Workload(
                group=group,
                kind=str(reference.get("kind")),
                name=str(reference.get("name")),
                uid=str(reference.get("uid")),
            )
            is_valid = found.is_valid and _NAME.fullmatch(version)
            return OwnerLink(workload=found, version=version) if is_valid else None
    return None


def read_created(obj: Mapping[str, Any]) -> float:
    """Return when an object was created, in seconds since 1970; 0 for no valid time."""
    return parse_time(str(mapping(obj.get("metadata")).get("creationTimestamp")))


def _plural(kind: str) -> str:
    """Return the name of a kind in paths, by the rule that Kubernetes' own tools guess with."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
