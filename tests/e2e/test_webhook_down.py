"""All webhooks are gone, and the overlay is fail-closed: what still works on our pods, what not.

Nothing but what we would have decided about may fail: controllers, kubelets and network plugins go
on with pods and workloads that are there.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.kubectl import KubectlError
from tests.e2e.control_planes import run_control_plane
from tests.support.installed.installation import NAMESPACE, installed
from tests.support.installed.pod_load import a_load_pod
from tests.support.installed.policies import CONFIG_MAPS, a_job, policy_of_admin, put_policy

_POD = "/api/v1/namespaces/default/pods/held"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RAY_CLUSTERS = "/apis/ray.io/v1/namespaces/default/rayclusters"
_RAY: JsonObject = {
    "metadata": {"name": "rayclusters.ray.io"},
    "spec": {
        "group": "ray.io",
        "scope": "Namespaced",
        "names": {"plural": "rayclusters", "singular": "raycluster", "kind": "RayCluster"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
_NOTE = {"example.org/note": "mine"}
_FAILED = "failed calling webhook"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(request: pytest.FixtureRequest, binaries: Binaries) -> AsyncIterator[ControlPlane]:
    """A control plane with managed pods and workloads, whose webhook was killed."""
    async with (
        run_control_plane(request, binaries, ControlPlaneOptions()) as plane,
        installed(plane) as cellgate,
    ):
        await _create_all(plane)
        await _let_alice_share_out(plane)
        cellgate.webhook.kill()
        await cellgate.webhook.wait(deadline_seconds=10)
        yield plane


async def _create_all(plane: ControlPlane) -> None:
    pod = a_load_pod("held", is_managed=True)
    pod["metadata"]["finalizers"] = ["example.org/wait"]
    await plane.api_as("alice").create(_POD.rpartition("/")[0], pod)
    await plane.api_as("alice").create(_JOBS, _with_finalizer(a_job("train", suspend=True)))
    spec = a_job("any")["spec"]
    cron_job = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    await plane.api_as("alice").create(_CRON_JOBS, _with_finalizer(_named("nightly", cron_job)))
    template = spec["template"]
    template["metadata"]["labels"] = {"app": "serve"}
    template["spec"]["restartPolicy"] = "Always"
    serve = {"replicas": 0, "selector": {"matchLabels": {"app": "serve"}}, "template": template}
    await plane.api_as("alice").create(_DEPLOYMENTS, _with_finalizer(_named("serve", serve)))


async def _let_alice_share_out(plane: ControlPlane) -> None:
    """Make alice an admin of a group, with the right of Kubernetes to edit its document."""
    groups = "groups: [{name: vision, admins: [alice], limits: {leafCells: 8}, over: fail}]"
    await put_policy(plane, "quotas", groups)
    role = ("--verb=get,update,patch", "--resource=configmaps", "-n", NAMESPACE)
    await plane.kubectl("create", "role", "share-out", *role)
    binding = ("--role=share-out", "--user=alice", "-n", NAMESPACE)
    await plane.kubectl("create", "rolebinding", "share-out", *binding)


def _named(name: str, spec: JsonObject) -> JsonObject:
    return {"metadata": {"name": name}, "spec": spec}


def _with_finalizer(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["example.org/wait"]}}


@pytest.mark.parametrize("part", ["", "/status"], ids=["pod", "status"])
async def test_what_others_note_on_a_managed_pod_is_stored(plane: ControlPlane, part: str) -> None:
    await plane.api.patch(_POD + part, {"metadata": {"annotations": {"cni.example/ip": part}}})
    await plane.api.patch(_POD + part, {"metadata": {"labels": _NOTE, "annotations": _NOTE}})
    stored = await plane.api.get(_POD)
    assert stored["metadata"]["annotations"]["cni.example/ip"] == part
    assert marks.DECISION_ANNOTATION in stored["metadata"]["annotations"]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"annotations": {marks.PLACEMENT_ANNOTATION: "forged"}}},
        {"metadata": {"annotations": {marks.HIVED_ISOLATION_ANNOTATION: "0"}}},
        {"metadata": {"annotations": {marks.SUBMITTER_ANNOTATION: None}}},
        {"metadata": {"labels": {marks.COSCHEDULING_LABEL: "other"}}},
        {"spec": {"schedulingGates": None}},
    ],
    ids=["placement", "devices", "submitter", "gang", "gate"],
)
async def test_what_is_ours_stays_as_it_is(plane: ControlPlane, body: JsonObject) -> None:
    before = (await plane.api.get(_POD))["metadata"]["resourceVersion"]
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api_as("alice").patch(_POD, body)
    assert (await plane.api.get(_POD))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (f"{_DEPLOYMENTS}/serve", {"replicas": 2}),
        (f"{_CRON_JOBS}/nightly", {"suspend": True}),
        (f"{_JOBS}/train", {"backoffLimit": 1, "suspend": False}),
    ],
    ids=["a Deployment", "a CronJob", "a Job"],
)
async def test_workloads_are_scaled_suspended_and_finalized(
    plane: ControlPlane, path: str, change: dict[str, Any]
) -> None:
    alice = plane.api_as("alice")
    await alice.patch(path, {"spec": change})
    await alice.patch(path, {"metadata": {"annotations": _NOTE, "labels": _NOTE}})
    await alice.patch(path, {"metadata": {"finalizers": None}})
    stored = await plane.api.get(path)
    assert change.items() <= stored["spec"].items()
    assert "finalizers" not in stored["metadata"]


async def test_a_deployment_is_scaled_by_its_scale(plane: ControlPlane) -> None:
    path = f"{_DEPLOYMENTS}/serve"
    await plane.kubectl("scale", "deployment/serve", "--replicas=3", user="alice")
    assert (await plane.api.get(path))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("path", "inner"),
    [(f"{_DEPLOYMENTS}/serve", ()), (f"{_CRON_JOBS}/nightly", ("jobTemplate", "spec"))],
    ids=["a Deployment", "a CronJob"],
)
async def test_another_template_waits_for_us(
    plane: ControlPlane, path: str, inner: tuple[str, ...]
) -> None:
    stamp = {"metadata": {"annotations": {marks.SUBMITTER_ANNOTATION: "bob"}}}
    body: JsonObject = {"template": stamp}
    for key in reversed(inner):
        body = {key: body}
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api_as("alice").patch(path, {"spec": body})


async def test_controllers_make_templates_of_templates(plane: ControlPlane) -> None:
    """As of a CronJob that is due: the Job is there, and its pods wait."""
    job = json.dumps(a_job("due", suspend=True))
    with pytest.raises(KubectlError, match=_FAILED):
        await plane.kubectl("create", "-f", "-", stdin=job)
    controller = "system:serviceaccount:kube-system:cronjob-controller"
    await plane.kubectl("create", "-f", "-", f"--as={controller}", stdin=job)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_kinds_of_others_are_created_and_scaled_unless_they_mention_leaf_cells(
    plane: ControlPlane,
) -> None:
    await plane.api.create(_CRDS, _RAY)
    await plane.api.wait_until(f"{_CRDS}/rayclusters.ray.io", _is_established)
    plain = await plane.api.create(_RAY_CLUSTERS, _ray_cluster("plain", cpu="1"))
    plain["spec"]["workerGroupSpecs"][0]["replicas"] = 2
    await plane.api.replace(f"{_RAY_CLUSTERS}/plain", plain)
    # As large as may be: a condition that cost too much would fail, too.
    much: list[Any] = [[{}] * 300_000, "x" * 3_000_000, [["x"] * 20] * 35_000]
    for more in much:
        large = _ray_cluster("large", cpu="1")
        large["spec"]["more"] = more
        await plane.api.create(_RAY_CLUSTERS, large, dryRun="All")
    ours = _ray_cluster("ours", **{"nvidia.com/gpu": "1"})
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api.create(_RAY_CLUSTERS, ours)
    # Its trusted controller would copy the name to pods, which are shaped for that user.
    template = _ray_cluster("forged", cpu="1")["spec"]["workerGroupSpecs"][0]["template"]
    template["metadata"] = {"annotations": {marks.SUBMITTER_ANNOTATION: "alice"}}
    forged = _named("forged", {"workerGroupSpecs": [{"template": template}]})
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api.create(_RAY_CLUSTERS, {**ours, **forged})


def _is_established(crd: JsonObject) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _ray_cluster(name: str, **limits: str) -> JsonObject:
    container = {"name": "main", "image": "any", "resources": {"limits": limits}}
    group = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    head = {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
    return {**head, **_named(name, {"workerGroupSpecs": [group]})}


async def test_strangers_bind_pods_of_others(plane: ControlPlane) -> None:
    spec = {"schedulerName": "none", "containers": [{"name": "main", "image": "any"}]}
    pods = _POD.rpartition("/")[0]
    await plane.api.create(pods, {"metadata": {"name": "other"}, "spec": spec})
    target = {"kind": "Node", "name": "node-0"}
    marked = {"name": "other", "annotations": {marks.PLACEMENT_ANNOTATION: "forged"}}
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api.create(f"{pods}/other/binding", {"metadata": marked, "target": target})
    body = {"metadata": {"name": "other"}, "target": target}
    await plane.api.create(f"{pods}/other/binding", body)


async def test_a_managed_pod_is_debugged(plane: ControlPlane) -> None:
    container = {"name": "look", "image": "any"}
    body = {"spec": {"ephemeralContainers": [container]}}
    await plane.api.patch(f"{_POD}/ephemeralcontainers", body)


async def test_no_number_of_annotations_makes_a_condition_too_expensive(
    plane: ControlPlane,
) -> None:
    """The API server gives up on conditions that cost too much, and would refuse the change."""
    many = {f"a{number}": "" for number in range(20_000)}
    await plane.api.patch(_POD, {"metadata": {"annotations": many}})
    await plane.api.patch(f"{_POD}/status", {"status": {"message": "as a kubelet"}})
    await plane.api.patch(_POD, {"metadata": {"annotations": dict.fromkeys(many)}})


async def test_policies_are_for_admins_only(plane: ControlPlane) -> None:
    """Who may raise which limit is known to us alone; those who may do anything need not wait."""
    body = policy_of_admin(
        "quotas", "groups: [{name: vision, limits: {leafCells: 999}, over: fail}]"
    )
    path = f"{CONFIG_MAPS}/cellgate-quotas"
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api_as("alice").patch(path, {"data": body["data"]})
    with pytest.raises(ApiError, match=_FAILED):
        await plane.api_as("alice").patch(
            path, {"metadata": {"labels": {marks.POLICY_LABEL: None}}}
        )
    await plane.api.patch(path, {"data": body["data"]})
    await plane.api.delete(path)


async def test_a_managed_pod_can_go(plane: ControlPlane) -> None:
    await plane.api.delete(_POD, gracePeriodSeconds="0")
    await plane.api.patch(_POD, {"metadata": {"finalizers": None}})
    assert not await plane.api.exists(_POD)
