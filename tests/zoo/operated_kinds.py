"""Workloads of kinds whose pods an operator creates. Each function is the life of one workload."""

from collections.abc import Callable
from typing import Any, Final

from tests.controlplane.api import JsonObject
from tests.support.kube.custom_kinds import (
    JOB_SET,
    LEADER_WORKER_SET,
    MPI_JOB,
    PYTORCH_JOB,
    CustomKind,
)
from tests.zoo.lives import GANG_LABEL, NEED_LABEL, Life
from tests.zoo.snapshots import Snapshot, is_ready


async def _run(life: Life, kind: CustomKind, spec: JsonObject) -> None:
    """Create an object, and wait until its operator says how it ended."""
    path = kind.path(life.namespace)
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": life.name}}
    await life.create(path, {**body, "spec": spec})
    life.outcome = await _until_it_ends(life, path)
    await life.remove(path, life.name)
    await life.until("its pods to go", _is_empty(life))


async def _until_it_ends(life: Life, path: str) -> str:
    life.waits_for = f"the end of {life.name}"
    while True:
        found = await life.get(path, life.name)
        for condition in found.get("status", {}).get("conditions") or []:
            if condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True":
                return "ran" if condition["type"] == "Succeeded" else "Failed"
        await life.next()


def _is_empty(life: Life) -> Callable[[Snapshot], bool]:
    return lambda now: not now.pods(life.namespace, life.name)


async def pytorch_job(life: Life) -> None:
    """A master and its workers, created at once."""
    workers, gpus = life.dice.randint(1, 3), life.dice.choice((2, 4, 8))
    template = life.template(
        gpus=gpus, run_for=life.dice.uniform(2, 8), labels=life.gang(1 + workers)
    )
    replicas = {"Master": 1, "Worker": workers}
    specs = {role: {"replicas": count, "template": template} for role, count in replicas.items()}
    await _run(life, PYTORCH_JOB, {"pytorchReplicaSpecs": specs})


async def mpi_job(life: Life) -> None:
    """Workers that run until their launcher, which has no devices, has ended."""
    workers, gpus = life.dice.randint(2, 3), life.dice.choice((2, 4))
    waits = life.dice.random() < 0.5
    labels = life.gang(1 + workers)
    if waits:  # the launcher starts on the workers' success only
        labels[NEED_LABEL] = str(workers)
    launcher = life.template(gpus=0, run_for=life.dice.uniform(2, 6), labels=labels)
    worker = life.template(gpus=gpus, labels=labels)
    spec: dict[str, Any] = {
        "launcherCreationPolicy": "WaitForWorkersReady" if waits else "AtStartup",
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": launcher},
            "Worker": {"replicas": workers, "template": worker},
        },
    }
    await _run(life, MPI_JOB, spec)


async def job_set(life: Life) -> None:
    """A driver without devices and workers, each a Job, sometimes one after the other."""
    size, gpus = life.dice.randint(2, 3), life.dice.choice((2, 4))
    depends, life.tolerates = life.dice.random() < 0.3, 4
    labels = life.gang(1 + size)
    if depends:
        labels[NEED_LABEL] = "1"
    seconds = life.dice.uniform(2, 6)

    def replicated(name: str, count: int, gpus: int) -> JsonObject:
        template = life.template(gpus=gpus, run_for=seconds, labels=labels)
        job = {"completions": count, "parallelism": count, "completionMode": "Indexed"}
        return {
            "name": name,
            "replicas": 1,
            "template": {"spec": {**job, "backoffLimit": 4, "template": template}},
        }

    workers = replicated("workers", size, gpus)
    if depends:
        workers["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    driver = replicated("driver", 1, gpus if depends else 0)
    await _run(life, JOB_SET, {"replicatedJobs": [driver, workers]})


async def leader_worker_set(life: Life) -> None:
    """Groups of a leader and workers; each group is a gang, all have the same label."""
    replicas, size = life.dice.randint(1, 2), life.dice.randint(2, 3)
    labels = life.gang(size)
    labels[GANG_LABEL] = f"{life.name}-by-group"
    template = life.template(gpus=life.dice.choice((2, 4)), labels=labels)
    template["spec"]["restartPolicy"] = "Always"
    path = LEADER_WORKER_SET.path(life.namespace)
    spec = {
        "replicas": replicas,
        "leaderWorkerTemplate": {
            "size": size,
            "leaderTemplate": template,
            "workerTemplate": template,
        },
    }
    body = {
        "apiVersion": LEADER_WORKER_SET.api_version,
        "kind": LEADER_WORKER_SET.kind,
        "metadata": {"name": life.name},
    }
    await life.create(path, {**body, "spec": spec})
    await life.until(
        "all members of all groups",
        lambda now: sum(map(is_ready, now.pods(life.namespace, life.name))) == replicas * size,
    )
    life.outcome = "ran"
    await life.remove(path, life.name)
    await life.until("its pods to go", _is_empty(life))


KINDS: Final = {
    "pytorchjob": pytorch_job,
    "mpijob": mpi_job,
    "jobset": job_set,
    "leaderworkerset": leader_worker_set,
}
"""All kinds of this module, by the name that `--without` knows."""
