"""Gangs of real workloads: Jobs and CronJobs, their retries and their runs."""

import asyncio
import json
from typing import Any

import pytest

from kube import marks
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.identity import ALICE, BOB, User
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation
from tests.support.installed.policies import delete_policy, put_rules
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload

NATIVE = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"


@pytest.fixture(scope="module")
def plane_options(binaries: Binaries) -> ControlPlaneOptions:
    """The Job controller makes a PodGroup for every Job, if this version can."""
    version = tuple(map(int, str(binaries.version).lstrip("v").split(".")[:2]))
    beta = "--runtime-config=scheduling.k8s.io/v1beta1=true"
    flags = (NATIVE, beta) if version >= (1, 37) else ()
    return ControlPlaneOptions(
        users=(ALICE, BOB, User("marker")),
        apiserver_flags=flags,
        controller_manager_flags=flags[:1],
        scheduler_flags=flags[:1],
    )


@pytest.fixture(scope="module")
def node_count() -> int:
    return 4


def a_gang_job(
    name: str, *, size: int, gang: str = "", kind: str = "Job", gpus: int = 8, **spec: Any
) -> ObjectBuilder:
    """An indexed Job whose pods are a gang; named by a label, or by the Job alone."""
    pod = a_new_pod("unused").with_gpus(gpus).of_class("test").ending_at_once()
    pod = pod.labelled(marks.GANG_SIZE_LABEL, str(size)).with_spec(restartPolicy="Never")
    pod = pod.labelled(marks.GANG_LABEL, gang) if gang else pod
    fields = {"completions": size, "parallelism": size, "completionMode": "Indexed", **spec}
    return a_workload(kind, name, template=a_template(pod), namespace=None, **fields)


async def submit(plane: ControlPlane, pods: str, job: JsonObject, kind: str = "jobs") -> JsonObject:
    namespace = pods.split("/")[4]
    return await plane.api_as("bob").create(f"/apis/batch/v1/namespaces/{namespace}/{kind}", job)


async def members(plane: ControlPlane, pods: str, job: str) -> list[JsonObject]:
    """The pods of a Job."""
    return await plane.api.list(pods, labelSelector=f"batch.kubernetes.io/job-name={job}")


async def running(plane: ControlPlane, pods: str, job: str, *, size: int) -> list[JsonObject]:
    """The pods of a Job that run, once there are so many."""
    found: list[JsonObject] = []

    async def look() -> bool:
        nonlocal found
        all_pods = await members(plane, pods, job)
        found = [pod for pod in all_pods if pod["status"].get("phase") == "Running"]
        return len(found) == size

    await poll_until(look, deadline_seconds=40, explain=lambda: f"{len(found)} of {job} run")
    return found


async def finish(plane: ControlPlane, pods: str, pod: JsonObject, phase: str) -> None:
    """End a pod as its kubelet would."""
    name = pod["metadata"]["name"]
    await plane.api.patch(f"{pods}/{name}/status", {"status": {"phase": phase}})


async def test_two_jobs_with_the_same_label_are_two_gangs(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """Each has two of four nodes; as one gang they would have one pod of each, and wait."""
    for name in ("one", "two"):
        await submit(plane, pods, a_gang_job(name, size=2, gang="same"))
    for name in ("one", "two"):
        found = await running(plane, pods, name, size=2)
        owners = {pod["metadata"]["annotations"][marks.WORKLOAD_ANNOTATION] for pod in found}
        assert len(owners) == 1
        assert owners.pop().startswith(f"batch/Job/{name}/")
    namespace = pods.split("/")[4]
    live = await cellgate.inspect(f"/v1/gangs/{namespace}/same")
    runs = [live["workload"], *(run["workload"] for run in live["otherRuns"])]
    assert sorted(runs) == ["Job/one", "Job/two"]
    explained = await cellgate.inspect(f"/v1/explain/{namespace}/{found[0]['metadata']['name']}")
    assert (explained["gangForm"], explained["workload"]) == ("cellgate", "Job/two")
    assert len(explained["siblings"]) == 1


async def test_runs_of_a_cron_job_overlap(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    namespace = pods.split("/")[4]
    cron = a_gang_job("nightly", size=2, gang="nightly", kind="CronJob")
    cron["spec"].update(schedule="0 0 1 1 *")
    await submit(plane, pods, cron, kind="cronjobs")
    for run in ("run-1", "run-2"):
        arguments = ("create", "job", run, "--from=cronjob/nightly", f"--namespace={namespace}")
        await plane.kubectl(*arguments, user="bob")
    for run in ("run-1", "run-2"):
        await running(plane, pods, run, size=2)


async def test_a_size_alone_makes_a_job_a_gang_and_its_last_retry_starts(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await submit(plane, pods, a_gang_job("train", size=3, backoffLimit=6))
    first, second, third = await running(plane, pods, "train", size=3)
    assert marks.PLACEMENT_ANNOTATION in first["metadata"]["annotations"]
    await finish(plane, pods, first, "Succeeded")
    await finish(plane, pods, second, "Succeeded")
    await finish(plane, pods, third, "Failed")
    (again,) = await running(plane, pods, "train", size=1)
    assert again["metadata"]["name"] != third["metadata"]["name"]


async def test_a_partly_finished_job_that_lost_its_other_pods_comes_back(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await submit(plane, pods, a_gang_job("train", size=3, gang="bert", backoffLimit=6))
    first, *others = await running(plane, pods, "train", size=3)
    await finish(plane, pods, first, "Succeeded")
    names = [pod["metadata"]["name"] for pod in others]
    await asyncio.gather(*(plane.api.delete(f"{pods}/{name}") for name in names))

    states: list[tuple[bool, str]] = []

    async def is_back() -> bool:
        found = await members(plane, pods, "train")
        states[:] = [(pod["metadata"]["name"] in names, pod["status"]["phase"]) for pod in found]
        return states.count((False, "Running")) == 2

    # The Job controller waits 10 s after one failure, and 20 s after two that it sees apart.
    await poll_until(is_back, deadline_seconds=45, explain=lambda: str(states))


async def test_the_last_retry_of_a_native_gang_starts(
    plane: ControlPlane, cellgate: Installation, pods: str, plane_options: ControlPlaneOptions
) -> None:
    if not plane_options.apiserver_flags:
        pytest.skip("this version has no PodGroups")
    job = a_gang_job("native", size=2, backoffLimit=6)
    del job["spec"]["template"]["metadata"]["labels"]
    job["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    await submit(plane, pods, job)
    first, second = await running(plane, pods, "native", size=2)
    await finish(plane, pods, first, "Succeeded")
    await finish(plane, pods, second, "Failed")
    await running(plane, pods, "native", size=1)


async def test_the_gang_of_a_pod_group_has_the_class_that_is_granted_for_its_true_size(
    plane: ControlPlane, cellgate: Installation, pods: str, plane_options: ControlPlaneOptions
) -> None:
    """The PodGroup does not say what its pods ask for, and its class can never change."""
    if not plane_options.apiserver_flags:
        pytest.skip("this version has no PodGroups")
    rule = {"priority": "test", "current": "> 4", "then": "oppo", "note": "large gangs"}
    await put_rules(plane, pods.split("/")[4], [rule])
    try:
        assert await run_native(plane, pods, "small", gpus=2) == [("oppo", "test")] * 2
        assert await run_native(plane, pods, "large", gpus=4) == [("oppo", None)] * 2
        assert await run_native(plane, pods, "said", gpus=2, says="2") == [("test", None)] * 2
    finally:
        await delete_policy(plane, "rules")


async def run_native(
    plane: ControlPlane, pods: str, name: str, *, gpus: int, says: str = ""
) -> list[tuple[str, str | None]]:
    """Run a native gang of two; return the class of each pod, and the effective one."""
    namespace = pods.split("/")[4]
    metadata = {"name": name, "annotations": {marks.LEAF_CELLS_ANNOTATION: says} if says else {}}
    spec = {"priorityClassName": "test", "schedulingPolicy": {"gang": {"minCount": 2}}}
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    group = await plane.api.create(path, {"metadata": metadata, "spec": spec})
    members = [a_new_pod(f"{name}-{index}").with_gpus(gpus).ending_at_once() for index in range(2)]
    for pod in members:
        await plane.api.create(pods, pod.in_native_gang(name))
    found: list[JsonObject] = []

    async def look() -> bool:
        found[:] = [await plane.api.get(f"{pods}/{pod['metadata']['name']}") for pod in members]
        return all(pod["spec"].get("nodeName") for pod in found)

    await poll_until(look, deadline_seconds=20, explain=lambda: f"{name} waits: {found}")
    assert {pod["spec"]["priority"] for pod in found} == {group["spec"]["priority"]}
    effective = marks.EFFECTIVE_CLASS_ANNOTATION
    return [
        (pod["spec"]["priorityClassName"], pod["metadata"]["annotations"].get(effective))
        for pod in found
    ]


async def test_a_gang_of_a_deployment_is_updated_member_by_member(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """Pods of the new ReplicaSet join the Deployment's gang as those of the old one end."""
    namespace = pods.split("/")[4]
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    def deployment(version: str) -> ObjectBuilder:
        pod = a_new_pod("unused").with_gpus(8).of_class("test").ending_at_once()
        pod = pod.in_gang("serve", size=2).labelled("version", version)
        strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        selector = {"matchLabels": {marks.GANG_LABEL: "serve"}}
        fields = {"replicas": 2, "selector": selector, "strategy": strategy}
        template = a_template(pod)
        return a_workload("Deployment", "serve", template=template, namespace=None, **fields)

    async def all_run(version: str) -> list[JsonObject]:
        found: list[JsonObject] = []

        async def look() -> bool:
            nonlocal found
            found = await plane.api.list(pods)
            running = [pod for pod in found if pod["status"].get("phase") == "Running"]
            versions = [pod["metadata"]["labels"]["version"] for pod in running]
            return len(found) == 2 and versions == [version] * 2

        await poll_until(look, deadline_seconds=30, explain=lambda: f"{version} does not run")
        return found

    await plane.api_as("bob").create(path, deployment("one"))
    before = await all_run("one")
    change = {"spec": {"template": deployment("two")["spec"]["template"]}}
    await plane.api_as("bob").patch(f"{path}/serve", change)
    after = await all_run("two")
    workloads = {
        pod["metadata"]["annotations"][marks.WORKLOAD_ANNOTATION] for pod in [*before, *after]
    }
    assert len(workloads) == 1
    await plane.api.delete(f"{path}/serve", propagationPolicy="Background")


async def test_a_stateful_set_that_can_never_start_its_gang_is_told_at_apply(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    pod = a_new_pod("unused").with_gpus(8).of_class("test").in_gang("serve", size=2)
    selector = {"matchLabels": {marks.GANG_LABEL: "serve"}}
    fields: dict[str, Any] = {"replicas": 2, "selector": selector, "serviceName": "serve"}
    workload = a_workload("StatefulSet", "serve", template=a_template(pod), **fields)
    workload["metadata"]["namespace"] = pods.split("/")[4]
    arguments = ("apply", "--dry-run=server", "-f", "-")
    told = await plane.kubectl(*arguments, stdin=json.dumps(workload), user="bob", check=False)
    assert "podManagementPolicy OrderedReady creates each pod when the one before is" in told.stderr
    workload["spec"]["podManagementPolicy"] = "Parallel"
    told = await plane.kubectl(*arguments, stdin=json.dumps(workload), user="bob", check=False)
    assert (told.returncode, "Warning" in told.stderr) == (0, False), told


async def test_a_gang_that_runs_since_before_an_upgrade_is_not_divided_by_a_retry(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """Its pods, its charge and its lease have the key that the label alone gives."""
    await submit(plane, pods, a_gang_job("old", size=3, gang="old", backoffLimit=6))
    unmarked = {"metadata": {"annotations": {marks.WORKLOAD_ANNOTATION: None}}}
    for pod in await running(plane, pods, "old", size=3):
        await plane.api.patch(f"{pods}/{pod['metadata']['name']}", unmarked)
    await cellgate.extender.stop()
    await cellgate.webhook.stop()
    await cellgate.start_extender()
    await cellgate.start_webhook()
    first, *_ = await running(plane, pods, "old", size=3)
    await finish(plane, pods, first, "Failed")
    found = await running(plane, pods, "old", size=3)
    assert all(marks.WORKLOAD_ANNOTATION not in pod["metadata"]["annotations"] for pod in found)
    namespace = pods.split("/")[4]
    shown = await cellgate.inspect(f"/v1/gangs/{namespace}/old")
    assert (len(shown["members"]), shown["otherRuns"], shown.get("uid")) == (3, [], None)
