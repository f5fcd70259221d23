"""Policy through the real API server: rules, quotas, identity, templates, PodGroups."""

import asyncio
import json
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kube import marks
from policy.submission import ClassName, GangKey, Occupancy, Submission, UserName
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.identity import ALICE, BOB, User
from tests.controlplane.waiting import poll_until
from tests.fuzz.reviews import Fuzzer
from tests.support.installed.installation import NAMESPACE, Installation
from tests.support.installed.policies import (
    CONFIG_MAPS,
    SHAPES,
    a_job,
    create_pod,
    delete_policy,
    pods_of,
    policy_of_admin,
    put_policy,
    put_rules,
)
from tests.support.policy.rule_reading import HIGH, read_plainly

CAROL, MARKER, BUSY = User("carol"), User("marker"), User("busy")
SUBMITTERS = tuple(User(f"user-{letter}") for letter in "abcdefgh")
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
NATIVE = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"
TABLES, SUBMISSIONS = 8, 6


@pytest.fixture(scope="module")
def plane_options(binaries: Binaries) -> ControlPlaneOptions:
    """Native PodGroups, if this version has them."""
    beta = "--runtime-config=scheduling.k8s.io/v1beta1=true"
    flags = (NATIVE, beta) if binaries.has_pod_groups else ()
    return ControlPlaneOptions(
        users=(ALICE, BOB, CAROL, MARKER, BUSY, *SUBMITTERS),
        apiserver_flags=flags,
        controller_manager_flags=flags[:1],
        scheduler_flags=flags[:1],
    )


@pytest.fixture(scope="module")
def node_count() -> int:
    return 2


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """A namespace of the test's own; policies of the test go with it."""
    name = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    for kind in ("rules", "quotas", "identity", "shaping"):
        await delete_policy(plane, kind)
    await plane.api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds="0")


async def test_random_tables_decide_as_a_plain_reading_of_the_contract(
    plane: ControlPlane, namespace: str
) -> None:
    dice = random.Random(20261116)
    for number in range(TABLES):
        user = SUBMITTERS[number].name
        table = await _put_random_table(plane, namespace, dice)
        held, held_high = 0, 0
        for step in range(SUBMISSIONS):
            asked, gpus = dice.choice(["prod", "test", "oppo"]), dice.randint(1, 3)
            submission = Submission(
                user=UserName(user),
                requested_class=ClassName(asked),
                gang=GangKey(namespace, "x"),
                leaf_count=gpus,
            )
            usage = Occupancy(occupied=held, occupied_high=held_high)
            outcome, final_class, _, _ = read_plainly(table, submission, usage)
            name = f"{user}-{step}"
            got = await _class_given(plane, namespace, name, user=user, gpus=gpus, class_name=asked)
            assert got == (final_class if outcome == "admitted" else None), (table, step)
            if got is not None:
                held, held_high = held + gpus, held_high + (gpus if got in HIGH else 0)


async def _class_given(
    plane: ControlPlane, namespace: str, name: str, *, user: str, gpus: int, class_name: str
) -> str | None:
    """The class that a new pod got, None if it was refused."""
    try:
        stored = await create_pod(
            plane, namespace, name, user=user, gpus=gpus, class_name=class_name
        )
    except ApiError:
        return None
    return str(stored["spec"]["priorityClassName"])


async def _put_random_table(
    plane: ControlPlane, namespace: str, dice: random.Random
) -> list[dict[str, Any]]:
    """Put a table in force; one that makes no sense is refused at apply, and another is tried."""
    while True:
        table = [_random_rule(dice) for _ in range(dice.randint(2, 6))]
        try:
            await put_rules(plane, namespace, table)
        except ApiError:
            continue
        return table


def _random_rule(dice: random.Random) -> dict[str, Any]:
    rule: dict[str, Any] = {"then": dice.choice(["retain", "fail", "test", "oppo", "oppo"])}
    if dice.random() < 0.5:
        rule["user"] = dice.choice(["^user-[a-d]$", "[e-h]$", "user"])
    if dice.random() < 0.5:
        rule["priority"] = dice.choice(["prod|test", "oppo", "test", "prod"])
    for field in ("current", "occupied", "occupiedHigh", "occupiedLow"):
        if dice.random() < 0.5:
            rule[field] = f"{dice.choice(['>', '>=', '<'])} {dice.randint(1, 8)}"
    if set(rule) == {"then"}:
        rule["current"] = "> 2"
    return rule


async def test_a_bad_document_is_refused_at_apply_with_all_its_problems(
    plane: ControlPlane, cellgate: Installation
) -> None:
    bad = policy_of_admin("quotas", "groups: [{name: v, over: nowhere, limits: {leafCells: x}}]")
    applied = await plane.kubectl(
        "apply", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(bad), check=False
    )
    assert "groups[0].limits.leafCells: must be a whole number" in applied.stderr


async def test_quotas_refuse_lower_and_tell_why(plane: ControlPlane, namespace: str) -> None:
    quotas = """groups:
- {name: a, limits: {leafCells: 3}, users: [{name: alice}]}
- {name: b, limits: {leafCellsHigh: 2}, over: oppo, users: [{name: bob}]}
"""
    await put_policy(plane, "quotas", quotas)
    await put_rules(plane, namespace, [])
    await create_pod(plane, namespace, "first", gpus=2)
    with pytest.raises(ApiError) as raised:
        await create_pod(plane, namespace, "second", gpus=2)
    assert raised.value.body["message"] == (
        'admission webhook "pods.cellgate.io" denied the request: alice asked for 2 leaf cells in '
        "class test: refused by the quotas of group a. Group a holds 2 leaf cells and 2 more are "
        "asked for; the limit is 3. A gang of 1 leaf cell would fit."
    )
    await create_pod(plane, namespace, "dry", gpus=1, dryRun="All")
    assert (await create_pod(plane, namespace, "third", gpus=1))["spec"]["priority"] == 10000
    await create_pod(plane, namespace, "b1", user="bob", gpus=2)
    lowered = await create_pod(plane, namespace, "b2", user="bob", gpus=1, class_name="prod")
    assert lowered["spec"]["priorityClassName"] == "oppo"
    assert lowered["metadata"]["annotations"][marks.REQUESTED_CLASS_ANNOTATION] == "prod"


async def test_parallel_submissions_stay_within_their_limit(
    plane: ControlPlane, namespace: str
) -> None:
    await put_rules(plane, namespace, [{"user": "^busy$", "occupied": "> 5", "then": "fail"}])

    async def submit(number: int) -> bool:
        """Create a pod, again while the webhook is too slow to answer; tell whether it exists."""
        for _ in range(20):
            try:
                await create_pod(plane, namespace, f"p-{number}", user="busy", class_name="oppo")
            except ApiError as error:
                if error.status == 409 or "refused by rule" in str(error):
                    return error.status == 409
            else:
                return True
        raise AssertionError(f"pod p-{number} was neither created nor refused")

    let_in = await asyncio.gather(*(submit(number) for number in range(60)))
    assert sum(let_in) == 5


async def test_no_pod_however_strange_is_a_fault(plane: ControlPlane, namespace: str) -> None:
    fuzzer = Fuzzer(20261116)
    statuses: Counter[int] = Counter()
    for _ in range(200):
        pod = fuzzer.next_pod()
        if isinstance(pod.get("metadata"), dict):
            pod["metadata"]["namespace"] = namespace
        statuses[await _status_of(plane, namespace, pod)] += 1
    assert min(statuses[201], statuses[403]) > 0, statuses
    assert max(statuses) < 500, statuses


async def _status_of(plane: ControlPlane, namespace: str, pod: JsonObject) -> int:
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        await plane.api_as("alice").create(path, pod, dryRun="All")
    except ApiError as error:
        return error.status
    return 201


async def test_the_api_server_takes_a_shaped_pod_and_a_job_is_told_before(
    plane: ControlPlane, namespace: str
) -> None:
    await put_policy(plane, "shaping", SHAPES)
    labels = {"labels": {"purpose": "train"}}

    async def is_in_force() -> bool:
        pod = await create_pod(plane, namespace, "x", metadata=labels, dryRun="All")
        return marks.SHAPED_ANNOTATION in pod["metadata"]["annotations"]

    await poll_until(is_in_force, deadline_seconds=10, explain=lambda: "shapes are not in force")
    pod = await create_pod(plane, namespace, "bert", metadata=labels)
    assert len(pod["metadata"]["annotations"][marks.SHAPED_ANNOTATION].split("\n")) == 10
    assert pod["spec"]["activeDeadlineSeconds"] == 3600
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    assert mounts[0] == {
        "name": "cellgate-train-0",
        "mountPath": "/mnt",
        "subPath": "home/alice",
    }
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    patient = a_job("patient")
    patient["spec"]["template"]["metadata"]["labels"] = {"purpose": "train"}
    patient["spec"]["template"]["spec"]["priorityClassName"] = "oppo"
    created = await plane.api_as("alice").create(jobs, patient)
    (rule,) = created["spec"]["podFailurePolicy"]["rules"]
    (condition,) = rule["onPodConditions"]
    assert (rule["action"], condition["type"]) == ("Ignore", "DisruptionTarget")
    job = a_job("wrong")
    job["spec"]["template"]["metadata"]["labels"] = {"purpose": "train"}
    job["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/os": "windows"}
    with pytest.raises(ApiError, match="but shape train requires"):
        await plane.api_as("alice").create(jobs, job)


async def test_a_jobs_pods_are_its_submitters(plane: ControlPlane, namespace: str) -> None:
    await put_rules(
        plane,
        namespace,
        [{"user": "^alice$", "priority": "prod", "then": "oppo", "note": "idle cells"}],
    )
    created = await plane.kubectl(
        "create", "-n", namespace, "-f", "-", user="alice", stdin=json.dumps(a_job("train"))
    )
    lowered, advice = created.stderr.strip().splitlines()
    assert lowered == "Warning: cellgate: rule 2 lowers class prod to oppo: idle cells"
    assert advice.startswith("Warning: cellgate: a Job in class oppo may be preempted")
    (pod,) = await pods_of(plane, namespace, "job-name=train")
    annotations = pod["metadata"]["annotations"]
    assert annotations[marks.SUBMITTER_ANNOTATION] == "alice"
    assert "team-a" in annotations[marks.SUBMITTER_GROUPS_ANNOTATION]
    assert pod["spec"]["priorityClassName"] == "oppo"

    async def is_told() -> bool:
        events = await plane.api.list(f"/api/v1/namespaces/{namespace}/events")
        told = [one["involvedObject"]["kind"] for one in events if one["reason"] == "ClassLowered"]
        return sorted(told) == ["Job", "Pod"]

    await poll_until(is_told, deadline_seconds=10, explain=lambda: "no Event tells it")


async def test_no_user_submits_in_the_name_of_another(plane: ControlPlane, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    fake = {marks.SUBMITTER_ANNOTATION: "alice"}
    with pytest.raises(ApiError, match='names "alice", but the request comes from "bob"'):
        await plane.api_as("bob").create(jobs, a_job("fake", annotations=fake))
    with pytest.raises(ApiError, match='names "alice", but the request comes from "bob"'):
        await create_pod(plane, namespace, "fake", user="bob", metadata={"annotations": fake})
    await create_pod(plane, namespace, "real")
    path = f"/api/v1/namespaces/{namespace}/pods/real"
    patch = {"metadata": {"annotations": {marks.SUBMITTER_ANNOTATION: "bob"}}}
    with pytest.raises(ApiError, match="only Cellgate may change it"):
        await plane.api_as("alice").patch(path, patch)
    await plane.api_as("alice").patch(path, {"metadata": {"annotations": {"mine": "1"}}})


async def test_a_deployment_rolls_out_once_and_keeps_its_submitter(
    plane: ControlPlane, namespace: str
) -> None:
    labels = {"app": "serve"}
    template = a_job("serve")["spec"]["template"]
    template["metadata"] = {"labels": labels}
    template["spec"]["restartPolicy"] = "Always"
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await plane.api_as("alice").create(path, deployment)
    (pod,) = await pods_of(plane, namespace, "app=serve")
    assert pod["metadata"]["annotations"][marks.SUBMITTER_ANNOTATION] == "alice"
    sets = await plane.api.list(f"/apis/apps/v1/namespaces/{namespace}/replicasets")
    assert len(sets) == 1
    stolen = {
        "spec": {"template": {"metadata": {"annotations": {marks.SUBMITTER_ANNOTATION: "b"}}}}
    }
    with pytest.raises(ApiError, match='was "alice" and cannot be changed'):
        await plane.api_as("alice").patch(f"{path}/serve", stolen)


async def test_a_groups_admin_changes_the_own_quotas_only(
    plane: ControlPlane, namespace: str
) -> None:
    await _let_carol_and_bob_write_config_maps(plane)
    text = "groups: [{name: v, admins: [carol], limits: {leafCells: 8}, users: [%s]}]"
    await put_policy(plane, "quotas", text % "")
    await put_rules(plane, namespace, [])
    path = f"{CONFIG_MAPS}/cellgate-quotas"
    more = policy_of_admin("quotas", text % "{name: alice, limits: {leafCells: 4}}")
    with pytest.raises(ApiError, match="is neither a policy admin nor an admin of these groups"):
        await plane.api_as("bob").patch(path, {"data": more["data"]})
    await plane.api_as("carol").patch(path, {"data": more["data"]})
    much = policy_of_admin("quotas", text % "{name: alice, limits: {leafCells: 9}}")
    with pytest.raises(ApiError, match="is 9, more than"):
        await plane.api_as("carol").patch(path, {"data": much["data"]})
    rules = f"{CONFIG_MAPS}/cellgate-rules"
    with pytest.raises(ApiError, match='"carol" is an admin of group v and may change'):
        await plane.api_as("carol").patch(rules, {"data": {"x": "y"}})


async def _let_carol_and_bob_write_config_maps(plane: ControlPlane) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}
    role = {"metadata": {"name": "editors"}, "rules": [rule]}
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "User", "name": name, "apiGroup": group} for name in ("carol", "bob")]
    reference = {"apiGroup": group, "kind": "Role", "name": "editors"}
    binding = {"metadata": {"name": "editors"}, "roleRef": reference, "subjects": subjects}
    await plane.api.create(f"{RBAC}/roles", role)
    await plane.api.create(f"{RBAC}/rolebindings", binding)


async def test_a_native_pod_group_and_its_pods_have_one_class(
    plane: ControlPlane, namespace: str, binaries: Binaries
) -> None:
    if not binaries.has_pod_groups:
        pytest.skip("this version has no PodGroups")
    await put_rules(plane, namespace, [{"priority": "prod", "then": "oppo", "note": "idle cells"}])
    group = {
        "metadata": {"name": "bert"},
        "spec": {
            "priorityClassName": "prod",
            "schedulingPolicy": {"gang": {"minCount": 2}},
        },
    }
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    stored = await plane.api.create(path, group)
    assert (stored["spec"]["priorityClassName"], stored["spec"]["priority"]) == ("oppo", 100)
    member = {"schedulingGroup": {"podGroupName": "bert"}}
    for name in ("bert-0", "bert-1"):
        pod = await create_pod(plane, namespace, name, class_name="prod", spec=member)
        assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == ("oppo", 100)
    other = {"schedulingGroup": {"podGroupName": "other"}}
    with pytest.raises(ApiError, match='PodGroup "other" does not exist'):
        await create_pod(plane, namespace, "lost", class_name="prod", spec=other)


@pytest.mark.parametrize("policy", ["basic", "gang"])
async def test_a_job_its_pod_group_and_its_pods_have_one_class(
    plane: ControlPlane, namespace: str, binaries: Binaries, policy: str
) -> None:
    if not binaries.has_pod_groups:
        pytest.skip("this version has no PodGroups")
    await put_rules(plane, namespace, [{"priority": "prod", "then": "oppo", "note": "idle cells"}])
    scheduling: dict[str, Any] = {"schedulingPolicy": {policy: {}}}
    job = a_job("train", parallelism=2, completions=2, scheduling=scheduling)
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    await plane.api_as("alice").create(path, job)
    pods = await pods_of(plane, namespace, "job-name=train", count=2)
    assert [pod["spec"]["priorityClassName"] for pod in pods] == ["oppo", "oppo"]
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    (group,) = await plane.api.list(path)
    assert group["spec"]["priorityClassName"] == "oppo"
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {
        group["metadata"]["name"]
    }
    alone = [marks.ALONE_ANNOTATION in pod["metadata"]["annotations"] for pod in pods]
    decisions = {pod["metadata"]["annotations"][marks.DECISION_ANNOTATION] for pod in pods}
    assert (alone, len(decisions)) == (
        ([True, True], 2) if policy == "basic" else ([False, False], 1)
    )
