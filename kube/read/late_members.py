"""Members that a workload creates only after others are Ready, and the mark that counts them.

They cannot exist when their gang starts, so the gang is complete without them. Kinds that can start
pods one after the other say so in their objects:

    JobSet            `dependsOn` of a replicated Job; `startupPolicyOrder: InOrder`
    MPIJob            `launcherCreationPolicy: WaitForWorkersReady`: the launcher
    LeaderWorkerSet   `startupPolicy: LeaderReady`: the workers of each group
    Volcano's Job     `dependsOn` of a task

The mark on a pod lists them as `2x8,1x0`: two members with eight leaf cells each, and one without.
Users of other kinds write it themselves; `2` alone means two members like the pod itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from kube import marks
from kube.read.leaf_demand import read_demand
from kube.read.workloads import Workload
from kube.values.fields import Fields, Problems
from kube.values.objects import items, mapping, marks_of
from kube.values.size_limits import MAX_GANG_SIZE

SAME: Final = -1
"""As many leaf cells as the pod itself asks for."""
_MARK: Final = re.compile(r"[0-9]{1,6}(?:x[0-9]{1,6})?(?:,[0-9]{1,6}x[0-9]{1,6}){0,99}")
_DEFAULT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LateMembers:
    """Pods of one template that are created later than others."""

    gang: str
    """The gang that their label names; empty if the workload names it."""
    count: int
    leaf_count: int


def parse_late(mark: str) -> tuple[int, ...] | None:
    """Return the leaf cells of each late member, largest first; None for a text that is no mark."""
    if not _MARK.fullmatch(mark):
        return None
    found: list[int] = []
    for part in mark.split(","):
        count, _, leaf_count = part.partition("x")
        if len(found) + int(count) > MAX_GANG_SIZE:
            return None
        found += [int(leaf_count) if leaf_count else SAME] * int(count)
    return tuple(sorted(found, reverse=True))


def format_late(leaf_counts: tuple[int, ...]) -> str:
    """Write the mark."""
    grouped = [(size, len(list(same))) for size, same in groupby(leaf_counts)]
    return ",".join(f"{count}x{size}" if size != SAME else str(count) for size, count in grouped)


def may_be_late(workload: Workload) -> bool:
    """Tell whether a workload is of a kind that can create members later than others."""
    return (workload.group, workload.kind) in _READERS


def creates_unknown(obj: Mapping[str, Any], templates: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether it is not known if an object creates all members of a gang at once.

    That matters if the gang has several templates, and none of them says it.
    """
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    is_known = group in _AT_ONCE or (group, str(obj.get("kind"))) in _READERS
    members = [template for template in templates if _is_member(template)]
    is_said = any(marks.LATE_ANNOTATION in marks_of(one, "annotations") for one in members)
    return len(members) > 1 and not is_known and not is_said


def find_late(obj: Mapping[str, Any]) -> tuple[LateMembers, ...]:
    """Return the members that a workload creates later than others; a wrong field counts as unset.

    Only templates that our labels mark as members of a gang count.
    """
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    read = _READERS.get((group, str(obj.get("kind"))))
    if read is None:
        return ()
    return tuple(
        LateMembers(
            gang=str(marks_of(template, "labels").get(marks.GANG_LABEL) or ""),
            count=count,
            leaf_count=_leaf_count(template),
        )
        for template, count in read(mapping(obj.get("spec")))
        if 0 < count <= MAX_GANG_SIZE and _is_member(template)
    )


def late_of(late: tuple[LateMembers, ...], labels: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the leaf cells of each late member of the gang that these labels name."""
    gang = str(labels.get(marks.GANG_LABEL) or "")
    found = [one.leaf_count for one in late if one.gang == gang for _ in range(one.count)]
    return tuple(sorted(found, reverse=True))


_Late = Iterator[tuple[Mapping[str, Any], int]]
"""Pod templates, and how many pods are made from each."""


def _of_job_set(spec: Mapping[str, Any]) -> _Late:
    order = mapping(spec.get("startupPolicy")).get("startupPolicyOrder")
    for index, job in enumerate(items(spec.get("replicatedJobs"))):
        if job.get("dependsOn") or (order == "InOrder" and index > 0):
            inner = mapping(mapping(job.get("template")).get("spec"))
            count = _number(job.get("replicas")) * _number(inner.get("parallelism"))
            yield mapping(inner.get("template")), count


def _of_mpi_job(spec: Mapping[str, Any]) -> _Late:
    if spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
        launcher = mapping(mapping(spec.get("mpiReplicaSpecs")).get("Launcher"))
        yield mapping(launcher.get("template")), _number(launcher.get("replicas"))


def _of_leader_worker_set(spec: Mapping[str, Any]) -> _Late:
    if spec.get("startupPolicy") == "LeaderReady":
        group = mapping(spec.get("leaderWorkerTemplate"))
        yield mapping(group.get("workerTemplate")), _number(group.get("size")) - 1


def _of_volcano_job(spec: Mapping[str, Any]) -> _Late:
    for task in items(spec.get("tasks")):
        if task.get("dependsOn"):
            yield mapping(task.get("template")), _number(task.get("replicas"))


_AT_ONCE: Final = ("", "batch", "apps", "kubeflow.org", "ray.io")
"""API groups whose other kinds create all pods at once."""
_READERS: Final = {
    ("jobset.x-k8s.io", "JobSet"): _of_job_set,
    ("kubeflow.org", "MPIJob"): _of_mpi_job,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _of_leader_worker_set,
    ("batch.volcano.sh", "Job"): _of_volcano_job,
}


def _number(value: object) -> int:
    return value if type(value) is int and value >= 0 else _DEFAULT


def _is_member(template: Mapping[str, Any]) -> bool:
    labels = marks_of(template, "labels")
    return bool(labels.get(marks.GANG_LABEL) or labels.get(marks.GANG_SIZE_LABEL))


def _leaf_count(template: Mapping[str, Any]) -> int:
    problems = Problems()
    spec = Fields(mapping(template.get("spec")), key="spec", parent=None, problems=problems)
    return read_demand(spec).device_count
