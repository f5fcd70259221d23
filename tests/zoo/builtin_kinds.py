"""Workloads of Kubernetes' own kinds. Each function is the life of one workload."""

import asyncio
import time
from typing import Any, Final

from tests.controlplane.api import JsonObject
from tests.zoo.lives import BY_JOB_LABEL, CRASH_LABEL, GANG_LABEL, NEED_LABEL, Life
from tests.zoo.snapshots import Snapshot, is_ready

_SEEN_SECONDS: Final = 1.0
"""After this time a pod that was created is in the next reading."""
_IGNORE_DISRUPTIONS: Final = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
}


def _run_for(life: Life) -> float:
    return life.dice.uniform(2, 8)


def _job(name: str, template: JsonObject, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 6, "template": template, **spec},
    }


def _gang_job(life: Life, name: str | None = None, **spec: Any) -> JsonObject:
    """An indexed Job whose pods are one gang."""
    size, gpus = life.dice.randint(2, 4), life.dice.choice((2, 4, 8))
    labels = {**life.gang(size), BY_JOB_LABEL: "yes", **spec.pop("labels", {})}
    template = life.template(gpus=gpus, run_for=_run_for(life), labels=labels)
    whole = {"completionMode": "Indexed", "completions": size, "parallelism": size}
    return _job(name or life.name, template, **whole, **spec)


def _end_of(job: JsonObject | None) -> str | None:
    """How a Job ended, if it has."""
    for condition in (job or {}).get("status", {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return f"{condition['type']} {condition.get('reason', '')}"
    return None


async def _until_it_ends(life: Life, *names: str) -> list[str]:
    """Wait until Jobs have ended, or were removed by their TTL."""
    ends: dict[str, str] = {}

    def all_ended(now: Snapshot) -> bool:
        for name in names:
            job = now.get("Job", life.namespace, name)
            end = _end_of(job) or ("gone" if job is None and name in seen else None)
            if job is not None:
                seen.add(name)
            if end is not None:
                ends.setdefault(name, end)
        return len(ends) == len(names)

    seen: set[str] = set()
    await life.until(f"the end of {', '.join(names)}", all_ended)
    return list(ends.values())


async def _run_job(life: Life, job: JsonObject) -> None:
    await life.create("Job", job)
    (end,) = await _until_it_ends(life, life.name)
    life.outcome = end
    await life.remove("Job", life.name)


async def indexed_job(life: Life) -> None:
    """A gang that may crash: its Job creates failed members again."""
    await _run_job(life, _gang_job(life, labels={CRASH_LABEL: "yes"}))


async def job_with_policy(life: Life) -> None:
    """The same, and disruptions do not count."""
    life.tolerates, life.ignores_disruptions = 3, True
    job = _gang_job(life, labels={CRASH_LABEL: "yes"})
    job["spec"] |= {"podFailurePolicy": _IGNORE_DISRUPTIONS, "backoffLimit": 3}
    await _run_job(life, job)


async def job_without_retries(life: Life) -> None:
    """No failure is tolerated, except disruptions."""
    life.tolerates, life.ignores_disruptions = 0, True
    await _run_job(life, _gang_job(life, podFailurePolicy=_IGNORE_DISRUPTIONS, backoffLimit=0))


async def plain_job(life: Life) -> None:
    """Independent pods, more than run at once."""
    template = life.template(
        gpus=life.dice.choice((1, 2, 4)), run_for=_run_for(life), labels={CRASH_LABEL: "yes"}
    )
    await _run_job(life, _job(life.name, template, completions=4, parallelism=2))


async def incremental_job(life: Life) -> None:
    """A gang that may start with fewer members."""
    labels = {**life.gang(4, need=2), BY_JOB_LABEL: "yes"}
    template = life.template(gpus=2, run_for=_run_for(life), labels=labels)
    whole = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}
    await _run_job(life, _job(life.name, template, **whole))


async def suspended_job(life: Life) -> None:
    """Created suspended, resumed, and sometimes suspended again by its user.

    Its user owns the field, so Cellgate ends its pods instead: those disruptions must not count.
    """
    life.ignores_disruptions = True
    job = _gang_job(life, suspend=True, podFailurePolicy=_IGNORE_DISRUPTIONS)
    await life.create("Job", job)
    for _ in range(life.dice.randint(1, 2)):
        await asyncio.sleep(life.dice.uniform(1, 3))
        await life.patch("Job", life.name, {"spec": {"suspend": False}})
        await asyncio.sleep(life.dice.uniform(1, 3))
        if _end_of(life.snapshot.get("Job", life.namespace, life.name)) is None:
            await life.patch("Job", life.name, {"spec": {"suspend": True}})
    await life.patch("Job", life.name, {"spec": {"suspend": False}})
    (life.outcome,) = await _until_it_ends(life, life.name)
    await life.remove("Job", life.name)


async def job_with_ttl(life: Life) -> None:
    """Removed by Kubernetes soon after its end."""
    await life.create("Job", _gang_job(life, ttlSecondsAfterFinished=1))
    (life.outcome,) = await _until_it_ends(life, life.name)
    await life.until("its TTL", lambda now: now.get("Job", life.namespace, life.name) is None)


async def doomed_job(life: Life) -> None:
    """Every pod fails, and so must the Job."""
    job = _gang_job(life, backoffLimit=0)
    job["spec"]["template"]["metadata"]["annotations"] = {"test.cellgate.io/fail-after": "1s"}
    await _run_job(life, job)
    life.outcome = "doomed" if life.outcome.startswith("Failed") else life.outcome


async def cron_job(life: Life) -> None:
    """Overlapping runs of one CronJob, whose pods all have the same gang label."""
    template = _gang_job(life)["spec"]
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": life.name},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": template}},
    }
    await life.create("CronJob", cron)
    stored = await life.get("CronJob", life.name)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": life.name,
        "uid": stored["metadata"]["uid"],
        "controller": True,
    }
    names = [f"{life.name}-{run}" for run in range(life.dice.randint(2, 3))]
    for name in names:
        job = _job(name, stored["spec"]["jobTemplate"]["spec"]["template"])
        job["spec"] = stored["spec"]["jobTemplate"]["spec"]
        job["metadata"] |= {
            "ownerReferences": [owner],
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        }
        await life.create("Job", job)
        await asyncio.sleep(life.dice.uniform(0, 1))
    life.outcome = max(await _until_it_ends(life, *names))  # "Failed" is after "Complete"
    await life.remove("CronJob", life.name)
    for name in names:
        await life.remove("Job", name)


async def twin_jobs(life: Life) -> None:
    """Two Jobs of one user with the same gang label at the same time."""
    names = [f"{life.name}-a", f"{life.name}-b"]
    for name in names:
        await life.create("Job", _gang_job(life, name))
    life.outcome = max(await _until_it_ends(life, *names))
    for name in names:
        await life.remove("Job", name)


async def deployment(life: Life) -> None:
    """Independent replicas, and rolling updates."""
    replicas = life.dice.randint(2, 4)
    template = life.template(
        gpus=life.dice.choice((1, 2)), labels={"app": life.name, CRASH_LABEL: "yes"}
    )
    template["spec"]["restartPolicy"] = "Always"
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": life.name}},
        "template": template,
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": life.name}}
    await life.create("Deployment", {**body, "spec": spec})

    def is_rolled_out(now: Snapshot) -> bool:
        found = now.get("Deployment", life.namespace, life.name)
        if found is None or (found["status"].get("observedGeneration") or 0) < _generation(found):
            return False
        told = found["status"]
        counts = [told.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")]
        return counts == [replicas] * 3

    await life.until("all replicas", is_rolled_out)
    for revision in range(life.dice.randint(1, 2)):
        change = {"metadata": {"annotations": {"zoo.test/revision": str(revision)}}}
        await life.patch("Deployment", life.name, {"spec": {"template": change}})
        await life.until(f"update {revision}", is_rolled_out)
    life.outcome = "ran"
    await life.remove("Deployment", life.name)


def _generation(obj: JsonObject) -> int:
    return int(obj["metadata"].get("generation", 0))


async def stateful_set(life: Life) -> None:
    """One gang of a StatefulSet that starts its pods in parallel, one of which is replaced."""
    size = life.dice.randint(2, 3)
    labels = {"app": life.name, **life.gang(size)}
    template = life.template(gpus=life.dice.choice((2, 4)), labels=labels)
    template["spec"]["restartPolicy"] = "Always"
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": life.name}}
    spec = {
        "replicas": size,
        "serviceName": life.name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": life.name}},
        "template": template,
    }
    await life.create("StatefulSet", {**body, "spec": spec})

    def all_run(now: Snapshot) -> bool:
        return sum(map(is_ready, now.pods(life.namespace, life.name))) == size

    await life.until("all members", all_run)
    await life.remove_pod(f"{life.name}-{life.dice.randrange(size)}")
    await life.until("all members again", all_run)
    life.outcome = "ran"
    await life.remove("StatefulSet", life.name)


async def bare_pod(life: Life) -> None:
    """One pod without a controller."""
    await _run_pods(life, {life.name: life.template(gpus=1, run_for=_run_for(life))})


async def bare_gang(life: Life) -> None:
    """A gang of pods without a controller; its user creates lost ones again."""
    size, gpus = life.dice.randint(2, 3), life.dice.choice((2, 8))
    template = life.template(gpus=gpus, run_for=_run_for(life), labels=life.gang(size))
    await _run_pods(life, {f"{life.name}-{index}": template for index in range(size)})


async def filler(life: Life) -> None:
    """A pod that Cellgate does not manage, with most of a node's CPUs."""
    template = life.template(gpus=0, run_for=life.dice.uniform(5, 15))
    template["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "100"}}
    await _run_pods(life, {life.name: template})


async def native_gang(life: Life) -> None:
    """A PodGroup of Kubernetes and its pods."""
    size, gpus = life.dice.randint(2, 3), life.dice.choice((2, 4))
    labels = {GANG_LABEL: life.name, NEED_LABEL: str(size)}
    template = life.template(gpus=gpus, run_for=_run_for(life), labels=labels)
    template["spec"]["schedulingGroup"] = {"podGroupName": life.name}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": life.name},
        "spec": {
            "priorityClassName": template["spec"]["priorityClassName"],
            "schedulingPolicy": {"gang": {"minCount": size}},
        },
    }
    await life.create("PodGroup", group)
    await _run_pods(life, {f"{life.name}-{index}": template for index in range(size)})
    await life.remove("PodGroup", life.name)


async def _run_pods(life: Life, templates: dict[str, JsonObject]) -> None:
    """Keep pods until all have succeeded; those that were lost or failed are created again."""
    done: set[str] = set()
    created: dict[str, float] = {}
    life.waits_for = f"the end of {len(templates)} pods"
    while len(done) < len(templates):
        now = life.snapshot
        for name in [name for name in templates if name not in done]:
            pod = now.get("Pod", life.namespace, name)
            if pod is None and now.at >= created.get(name, 0.0) + _SEEN_SECONDS:
                body = {"apiVersion": "v1", "kind": "Pod", **templates[name]}
                body["metadata"] = {**templates[name]["metadata"], "name": name}
                await life.create("Pod", body)
                created[name] = time.monotonic()
            elif pod is not None and pod["status"].get("phase") == "Succeeded":
                done.add(name)
            elif pod is not None and pod["status"].get("phase") == "Failed":
                await life.remove_pod(name)
        await life.next()
    life.outcome = "ran"
    for name in templates:
        await life.remove_pod(name)


KINDS: Final = {
    "job": indexed_job,
    "policy-job": job_with_policy,
    "strict-job": job_without_retries,
    "plain-job": plain_job,
    "incremental-job": incremental_job,
    "suspended-job": suspended_job,
    "ttl-job": job_with_ttl,
    "doomed-job": doomed_job,
    "cronjob": cron_job,
    "twin-jobs": twin_jobs,
    "deployment": deployment,
    "statefulset": stateful_set,
    "pod": bare_pod,
    "pods": bare_gang,
    "native": native_gang,
    "filler": filler,
}
"""All kinds of this module, by the name that `--without` knows."""
