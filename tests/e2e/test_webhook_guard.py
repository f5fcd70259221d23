"""Who may change what was decided about a pod, by every way that a real API server has."""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from kube import marks
from kube.api.webhook_configurations import GROUP, KINDS
from tests.contract.kube_admission import POD_RULE, WebhookStub, patch
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.waiting import poll_until
from tests.e2e.control_planes import run_control_plane
from tests.support.installed.installation import Installation, installed
from tests.support.installed.policies import (
    CONFIG_MAPS,
    SHAPES,
    a_job,
    create_pod,
    delete_policy,
    pods_of,
    policy_of_admin,
    put_policy,
)

_PODS = "/api/v1/namespaces/default/pods"
_PAGE = re.DOTALL | re.MULTILINE
_NO_DEVICES = {"containers": [{"name": "main", "image": "hydra:1"}]}
_LATER = f"{GROUP}/{KINDS[0]}/zz-later"
_TRAIN = {"labels": {"purpose": "train"}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(
    request: pytest.FixtureRequest, binaries: Binaries
) -> AsyncIterator[tuple[ControlPlane, Installation]]:
    """Cellgate on a control plane where bob may do anything, and pods are not gated."""
    async with (
        run_control_plane(request, binaries, ControlPlaneOptions()) as plane,
        installed(plane, webhook_flags=("--gate-queued-only",)) as installation,
    ):
        await plane.kubectl(
            "create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", "--user=bob"
        )
        await put_policy(plane, "shaping", SHAPES)
        await poll_until(lambda: _shapes(plane), deadline_seconds=10, explain=lambda: "no shapes")
        yield plane, installation


@pytest.fixture
def plane(cellgate: tuple[ControlPlane, Installation]) -> ControlPlane:
    return cellgate[0]


async def _shapes(plane: ControlPlane) -> bool:
    pod = await create_pod(plane, "default", "x", metadata=_TRAIN, dryRun="All")
    return marks.SHAPED_ANNOTATION in pod["metadata"]["annotations"]


async def test_a_new_pod_is_asked_about_once_if_there_is_nothing_to_say(
    cellgate: tuple[ControlPlane, Installation],
) -> None:
    plane, installation = cellgate
    asked = 'cellgate_http_requests_total{route="/validate/pods"'
    before = await installation.webhook_metric(0, asked)
    gang = {marks.VC_LABEL: "default", marks.GANG_LABEL: "once", marks.GANG_SIZE_LABEL: "1"}
    pod = await create_pod(
        plane, "default", "once", metadata={"labels": {**_TRAIN["labels"], **gang}}
    )
    assert marks.REQUEST_ANNOTATION in pod["metadata"]["annotations"]
    assert await installation.webhook_metric(0, asked) == before


def _binding(name: str, **annotations: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"kind": "Node", "name": "node-0"},
    }


async def test_a_user_creates_no_managed_pod_on_a_node(plane: ControlPlane) -> None:
    refusal, spec = "spec.nodeName: is .node-0.; only Cellgate", {"nodeName": "node-0"}
    with pytest.raises(ApiError, match=refusal):
        await create_pod(plane, "default", "here", user="bob", spec=spec)
    job = a_job("here")
    job["spec"]["template"]["spec"] |= spec
    with pytest.raises(ApiError, match=f"spec.template.{refusal}"):
        await plane.api_as("bob").create("/apis/batch/v1/namespaces/default/jobs", job)
    stored = await create_pod(plane, "default", "here", user="admin", spec=spec)
    assert stored["spec"]["nodeName"] == "node-0"


async def test_a_stranger_binds_others_pods_but_not_ours(plane: ControlPlane) -> None:
    await create_pod(plane, "default", "ours")
    bob = plane.api_as("bob")
    for path in (f"{_PODS}/ours/binding", "/api/v1/namespaces/default/bindings"):
        with pytest.raises(ApiError, match="only Cellgate and its kube-scheduler may bind it"):
            await bob.create(path, _binding("ours"))
    assert "nodeName" not in (await plane.api.get(f"{_PODS}/ours"))["spec"]
    waits = {"schedulerName": "none", "containers": [{"name": "main", "image": "any"}]}
    await bob.create(_PODS, {"metadata": {"name": "other"}, "spec": waits})
    forged = _binding("other", **{marks.PLACEMENT_ANNOTATION: "forged"})
    with pytest.raises(ApiError, match="only Cellgate may write it"):
        await bob.create(f"{_PODS}/other/binding", forged)
    await bob.create(f"{_PODS}/other/binding", _binding("other"))
    assert (await plane.api.get(f"{_PODS}/other"))["spec"]["nodeName"] == "node-0"


async def test_what_a_shape_fixed_cannot_be_resized(plane: ControlPlane) -> None:
    await create_pod(plane, "default", "sized", metadata=_TRAIN)
    path = f"{_PODS}/sized/resize"

    async def resize(**requests: str) -> None:
        container = {"name": "main", "resources": {"requests": requests}}
        body = {"spec": {"containers": [container]}}
        await plane.api_as("bob").patch(path, body, kind="strategic")

    with pytest.raises(ApiError, match="shape train fixes memory at 64Mi"):
        await resize(memory="1Gi")
    await resize(cpu="200m")
    stored = (await plane.api.get(f"{_PODS}/sized"))["spec"]["containers"][0]
    assert stored["resources"]["requests"]["memory"] == "64Mi"
    assert stored["resources"]["requests"]["cpu"] == "200m"


async def test_a_pod_that_asks_as_a_whole_is_shaped_and_valid(plane: ControlPlane) -> None:
    whole = {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"memory": "2Gi"}}
    pod = await create_pod(plane, "default", "whole", metadata=_TRAIN, spec={"resources": whole})
    amounts = pod["spec"]["resources"]
    assert amounts["requests"]["cpu"] == "1"
    assert amounts["requests"].get("memory", "64Mi") == "64Mi"
    assert "memory" not in amounts.get("limits", {})
    job = a_job("told")
    job["spec"]["template"]["metadata"]["labels"] = _TRAIN["labels"]
    job["spec"]["template"]["spec"]["resources"] = whole
    told = await plane.kubectl("create", "-f", "-", stdin=json.dumps(job), user="alice")
    assert "memory for each container instead of the requested 2Gi for the pod" in told.stderr


async def test_a_container_for_debugging_does_not_see_what_is_others(plane: ControlPlane) -> None:
    pod = await create_pod(plane, "default", "debugged", metadata=_TRAIN)
    path = f"{_PODS}/debugged/ephemeralcontainers"
    (home, *_) = pod["spec"]["volumes"]

    async def debug(name: str, **more: object) -> None:
        container = {"name": name, "image": "any", **more}
        await plane.api_as("bob").patch(path, {"spec": {"ephemeralContainers": [container]}})

    with pytest.raises(ApiError, match=f"only shapes may mount volume {home['name']}"):
        await debug("peek", volumeMounts=[{"name": home["name"], "mountPath": "/all"}])
    await debug("look")


async def test_a_pod_that_a_later_webhook_changes_is_refused(plane: ControlPlane) -> None:
    """One that makes a pod ask for leaf cells after us, also if its author foresaw it."""
    later = WebhookStub()
    await later.start()
    hook = {
        "name": "later.example.org",
        "clientConfig": {"url": later.url, "caBundle": later.ca_bundle},
        "rules": [POD_RULE],
        "objectSelector": {"matchLabels": {"later": "yes"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await plane.api.create(
        _LATER.rpartition("/")[0], {"metadata": {"name": "zz-later"}, "webhooks": [hook]}
    )
    labels = {"labels": {"later": "yes"}}

    async def is_called() -> bool:
        await create_pod(plane, "default", "probe", metadata=labels, dryRun="All")
        return bool(later.seen)

    await poll_until(is_called, deadline_seconds=20, explain=lambda: "not called")
    more = {"limits": {"nvidia.com/gpu": "8"}}
    later.respond = patch({"op": "add", "path": "/spec/containers/0/resources", "value": more})
    forged = {marks.DECISION_ANNOTATION: "x", marks.CLASS_ANNOTATION: "test"}
    forged[marks.REQUEST_ANNOTATION] = "8 leaf cells, main=8 nvidia.com/gpu"
    metadata = {**labels, "annotations": forged}
    plain = {"containers": [{"name": "main", "image": "any", "resources": {}}]}
    try:
        with pytest.raises(ApiError, match="is missing from a pod that asks for leaf cells"):
            await create_pod(plane, "default", "late", metadata=metadata, spec=plain)
        with pytest.raises(ApiError, match='was "1 leaf cells, main=1 nvidia'):
            await create_pod(plane, "default", "grown", metadata=metadata)
    finally:
        await plane.api.delete(_LATER)
        await later.stop()


async def test_a_billing_system_raises_a_limit_until_a_moment(plane: ControlPlane) -> None:
    await put_policy(
        plane,
        "quotas",
        """
groups:
- name: vision
  limits: {cpu: 1}
  users: [{name: alice}]
  billing: {identities: [bob], most: {cpu: 8}}
""",
    )
    large = {"resources": {"requests": {"cpu": "4"}, "limits": {"nvidia.com/gpu": "1"}}}
    spec = {"containers": [{"name": "main", "image": "hydra:1", **large}]}

    async def is_admitted() -> bool:
        try:
            await create_pod(plane, "default", "paid", spec=spec, dryRun="All")
        except ApiError as error:
            return "asks for 4 CPUs more; the limit is 1 CPU" not in str(error)
        return True

    async def is_refused() -> bool:
        return not await is_admitted()

    await poll_until(is_refused, deadline_seconds=10, explain=lambda: "no quotas")
    until = datetime.now(UTC) + timedelta(seconds=6)
    limits = f'[{{group: vision, limits: {{cpu: 4}}, until: "{until.isoformat()}"}}]'
    document = policy_of_admin("billing", f"limits: {limits}")
    too_much = policy_of_admin("billing", f"limits: {limits.replace('cpu: 4', 'cpu: 9')}")
    bob = plane.api_as("bob")
    with pytest.raises(ApiError, match=r"limits\.cpu: must be from 0 to 8, not 9"):
        await bob.create(CONFIG_MAPS, too_much)
    with pytest.raises(ApiError, match="may change no other document than Billing"):
        await bob.create(CONFIG_MAPS, policy_of_admin("rules", "rules: []"))
    await bob.create(CONFIG_MAPS, document)
    await poll_until(is_admitted, deadline_seconds=5, explain=lambda: "the limit is not raised")
    await poll_until(is_refused, deadline_seconds=15, explain=lambda: "the limit did not end")
    for kind in ("billing", "quotas"):
        await delete_policy(plane, kind)


async def test_the_launcher_of_the_documentation_is_shaped_where_its_namespace_opts_in(
    cellgate: tuple[ControlPlane, Installation],
) -> None:
    plane, installation = cellgate
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
    (document,) = re.findall(r"^```yaml\n(?=apiVersion[^\n]*\nkind: Shaping)(.*?)^```", page, _PAGE)
    api = plane.api_as("alice")
    for name, labels in (("shaped", {marks.SHAPING_LABEL: "enabled"}), ("plain", {})):
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    await put_policy(plane, "identity", "groups: {vision: [alice]}")
    await put_policy(plane, "shaping", document.partition("kind: Shaping\n")[2])
    launcher = {"labels": {"cellgate.io/template": "mpi-launcher"}}

    async def is_in_force() -> bool:
        pod = await create_pod(
            plane, "shaped", "x", metadata=launcher, spec=_NO_DEVICES, dryRun="All"
        )
        return marks.SHAPED_ANNOTATION in pod["metadata"].get("annotations", {})

    await poll_until(is_in_force, deadline_seconds=10, explain=lambda: "shapes are not in force")
    job = a_job("launch")
    job["spec"]["template"]["metadata"]["labels"] = launcher["labels"]
    del job["spec"]["template"]["spec"]["containers"][0]["resources"]
    await api.create("/apis/batch/v1/namespaces/shaped/jobs", job)
    (pod,) = await pods_of(plane, "shaped", "batch.kubernetes.io/job-name=launch")
    main = pod["spec"]["containers"][0]
    assert main["command"] == ["/opt/launch"]
    assert main["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert pod["spec"]["serviceAccountName"] == "mpi-launcher"
    assert pod["metadata"]["annotations"][marks.SUBMITTER_ANNOTATION] == "alice"
    assert marks.DECISION_ANNOTATION not in pod["metadata"]["annotations"]
    # It may ask for devices: none are given, and none are charged.
    asking = await create_pod(plane, "plain", "asking", gpus=4, metadata=launcher, dryRun="All")
    assert "nvidia.com/gpu" not in asking["spec"]["containers"][0]["resources"].get("limits", {})
    other = await create_pod(
        plane, "plain", "other", metadata=launcher, spec=_NO_DEVICES, dryRun="All"
    )
    assert marks.SHAPED_ANNOTATION not in other["metadata"].get("annotations", {})
    path = f"/api/v1/namespaces/shaped/pods/{pod['metadata']['name']}"
    gone = {"metadata": {"annotations": {marks.SHAPED_ANNOTATION: None}}}
    with pytest.raises(ApiError, match="only Cellgate may change it"):
        await plane.api_as("bob").patch(path, gone)
    installation.webhook.kill()
    late = await create_pod(plane, "shaped", "late", metadata=launcher, spec=_NO_DEVICES)
    assert late["spec"].get("serviceAccountName") != "mpi-launcher", "it fails open"
