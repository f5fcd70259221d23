"""Templates: stamped once with the real submitter, and previewed."""

from copy import deepcopy
from typing import Any

import pytest

from simulation.objects.patch import json_patch
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
DEPLOYMENT_CONTROLLER = "system:serviceaccount:kube-system:deployment-controller"
OPERATOR = "system:serviceaccount:kubeflow:training-operator"
IDENTITY = f"""
apiVersion: cellgate.io/v1
kind: Identity
groups: {{vision: [alice]}}
vcs: {{closed: {{groups: [vision]}}}}
trustedControllers: ["{OPERATOR}"]
templates:
- {{apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: "spec.pytorchReplicaSpecs.*.template"}}
- {{apiVersion: example.org/v1, kind: Swarm, path: "spec.parts.*.template"}}
- {{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, path: spec.replicatedJobs.*.template.spec.template}}
"""  # noqa: E501 - a path
RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {user: "^mallory$", then: fail, note: not you}
- {priority: prod, then: oppo, note: only opportunistic work}
"""
STAMP = {"cellgate.io/submitter": "alice", "cellgate.io/submitter-groups": '["a","b"]'}


def template(**metadata: Any) -> dict[str, Any]:
    """A template with a label, and what else a test puts on it."""
    return {**a_template(), "metadata": {"labels": {"app": "x"}, **metadata}}


def workload(
    kind: str = "Job", content: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    return a_workload(kind, template=template() if content is None else content, **spec)


def stamped(obj: dict[str, Any], answer: ReviewResponse) -> dict[str, Any]:
    """Return the object as the API server stores it."""
    assert answer.is_allowed, answer.message
    return json_patch(deepcopy(obj), list(answer.patch))


@pytest.fixture
def webhook() -> Webhook:
    return Webhook({"identity": IDENTITY, "rules": RULES})


@pytest.mark.parametrize(
    "kind",
    ["Job", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ReplicationController"],
)
async def test_the_submitter_is_stamped_on_a_template(webhook: Webhook, kind: str) -> None:
    job = workload(kind)
    answer = await webhook.templates.mutate(a_review(job, groups=("b", "", "a")))
    assert stamped(job, answer)["spec"]["template"]["metadata"] == {
        "labels": {"app": "x"},
        "annotations": STAMP,
    }


async def test_a_cron_job_is_stamped_where_its_pods_come_from(webhook: Webhook) -> None:
    job = workload("CronJob", template(annotations={"mine": "1"}))
    stored = stamped(job, await webhook.templates.mutate(a_review(job, groups=("b", "a"))))
    inner = stored["spec"]["jobTemplate"]["spec"]["template"]
    assert inner["metadata"]["annotations"] == {"mine": "1", **STAMP}


async def test_listed_kinds_are_stamped_in_all_their_templates(webhook: Webhook) -> None:
    torch = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"template": {"spec": template()["spec"]}},
                "Worker": {"template": template()},
            }
        },
    }
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"replicatedJobs": [{"template": {"spec": {"template": template()}}}] * 2},
    }
    stored = stamped(torch, await webhook.templates.mutate(a_review(torch)))
    specs = stored["spec"]["pytorchReplicaSpecs"]
    for name in ("Master", "Worker"):
        annotations = specs[name]["template"]["metadata"]["annotations"]
        assert annotations["cellgate.io/submitter"] == "alice"
    stored = stamped(jobset, await webhook.templates.mutate(a_review(jobset)))
    for job in stored["spec"]["replicatedJobs"]:
        annotations = job["template"]["spec"]["template"]["metadata"]["annotations"]
        assert annotations["cellgate.io/submitter"] == "alice"


async def test_what_is_not_managed_or_not_known_is_left_alone(webhook: Webhook) -> None:
    plain = workload(content={"spec": {"containers": [{"name": "main"}]}})
    unknown = {**workload(), "apiVersion": "example.org/v1"}
    for obj in (plain, unknown, {"kind": 5}, {}):
        answer = await webhook.templates.mutate(a_review(obj))
        assert (answer.is_allowed, list(answer.patch)) == (True, [])


async def test_no_user_submits_in_the_name_of_another(webhook: Webhook) -> None:
    job = workload(content=template(annotations=STAMP))
    answer = await webhook.templates.mutate(a_review(job, user="bob"))
    assert answer.message == (
        'spec.template.metadata.annotations[cellgate.io/submitter]: names "alice", but the request '
        'comes from "bob"; leave the annotation out, Cellgate sets it'
    )
    own = await webhook.templates.mutate(a_review(job, user="alice", groups=("c",)))
    annotations = stamped(job, own)["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cellgate.io/submitter-groups"] == '["c"]'


@pytest.mark.parametrize("controller", [DEPLOYMENT_CONTROLLER, OPERATOR])
async def test_what_a_trusted_controller_makes_is_left_alone(
    webhook: Webhook, controller: str
) -> None:
    replica_set = workload("ReplicaSet", template(annotations=STAMP))
    answer = await webhook.templates.mutate(a_review(replica_set, user=controller))
    assert (answer.is_allowed, list(answer.patch)) == (True, [])


async def test_a_stamp_stays(webhook: Webhook) -> None:
    old = workload("Deployment", template(annotations=STAMP))
    same = workload("Deployment", template(annotations=STAMP, labels={"app": "y"}))
    gone = workload("Deployment", template(labels={"app": "y"}))
    other = workload("Deployment", template(annotations={**STAMP, "cellgate.io/submitter": "bob"}))
    groups = {**STAMP, "cellgate.io/submitter-groups": '["root"]'}
    more = workload("Deployment", template(annotations=groups))

    kept = await webhook.templates.mutate(a_review(same, old=old, user="bob"))
    assert (kept.is_allowed, list(kept.patch)) == (True, [])
    put_back = await webhook.templates.mutate(a_review(gone, old=old, user="bob"))
    assert stamped(gone, put_back)["spec"]["template"]["metadata"]["annotations"] == STAMP
    for changed in (other, more):
        refused = await webhook.templates.mutate(a_review(changed, old=old, user="bob"))
        assert refused.message.endswith('was "alice" and cannot be changed')


async def test_a_stamp_on_a_template_that_was_not_reviewed_is_not_believed(
    webhook: Webhook,
) -> None:
    unmanaged = workload("Deployment", {**template(annotations=STAMP), "spec": {"containers": []}})
    managed = workload("Deployment", template(annotations=STAMP))
    answer = await webhook.templates.mutate(a_review(managed, old=unmanaged, user="bob"))
    assert not answer.is_allowed


async def test_a_stamp_on_what_the_api_server_does_not_ask_about_is_not_believed(
    webhook: Webhook,
) -> None:
    forged = template(annotations=STAMP)
    forged["spec"]["containers"] = [{"name": "main"}]
    forged["spec"]["overhead"] = {"nvidia.com/gpu": "1"}
    after = workload("Deployment", template(annotations=STAMP))
    review = a_review(after, old=workload("Deployment", forged), user="bob")
    refused = await webhook.templates.mutate(review)
    assert 'names "alice", but the request comes from "bob"' in refused.message


def pytorch_job(pod: dict[str, Any], **fields: Any) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": {"Master": {"template": pod}}, **fields}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}


PLAIN = {"containers": [{"name": "main"}]}


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_forged_stamp_is_refused_on_workloads_without_leaf_cells(
    webhook: Webhook, is_known: bool
) -> None:
    """Wherever it is: a trusted controller may copy it to pods, which are shaped by it."""
    forged = pytorch_job({"metadata": {"annotations": STAMP}, "spec": PLAIN})
    path = "spec.pytorchReplicaSpecs.Master.template.metadata.annotations[cellgate.io/submitter]"
    told = f'{path}: names "alice", but'
    if not is_known:
        forged["kind"] = "Notebook"
        told = f'{path}: is "alice", but'
    refused = await webhook.templates.mutate(a_review(forged, user="bob"))
    assert refused.message == (
        f'{told} the request comes from "bob"; leave the annotation out, Cellgate sets it'
    )
    kept = await webhook.templates.mutate(a_review(forged, old=forged, user="bob"))
    assert (kept.is_allowed, list(kept.patch)) == (True, [])
    made = await webhook.templates.mutate(a_review(forged, user=OPERATOR))
    assert (made.is_allowed, list(made.patch)) == (True, [])


async def test_the_own_stamp_gets_the_own_groups_also_without_leaf_cells(webhook: Webhook) -> None:
    claimed = pytorch_job({"metadata": {"annotations": STAMP}, "spec": PLAIN})
    answer = await webhook.templates.mutate(a_review(claimed, user="alice", groups=("c",)))
    (master,) = stamped(claimed, answer)["spec"]["pytorchReplicaSpecs"].values()
    groups = master["template"]["metadata"]["annotations"]["cellgate.io/submitter-groups"]
    assert groups == '["c"]'
    elsewhere = pytorch_job({"spec": PLAIN}, extra={"cellgate.io/submitter-groups": '["root"]'})
    refused = await webhook.templates.mutate(a_review(elsewhere, user="alice", groups=("c",)))
    assert refused.message.startswith('spec.extra[cellgate.io/submitter-groups]: is "[')


async def test_a_template_older_than_we_are_is_stamped_when_it_changes(webhook: Webhook) -> None:
    old, scaled = workload("Deployment"), workload("Deployment", replicas=5)
    changed = workload("Deployment", template(labels={"app": "y"}))
    left = await webhook.templates.mutate(a_review(scaled, old=old, user="bob"))
    assert (left.is_allowed, list(left.patch)) == (True, [])
    stored = stamped(changed, await webhook.templates.mutate(a_review(changed, old=old)))
    annotations = stored["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cellgate.io/submitter"] == "alice"


async def test_the_submitter_reads_at_once_what_pods_will_get(webhook: Webhook) -> None:
    content = template()
    content["spec"]["priorityClassName"] = "prod"
    answer = await webhook.templates.mutate(a_review(workload(content=content)))
    assert answer.warnings[0] == (
        "cellgate: rule 2 lowers class prod to oppo: only opportunistic work"
    )
    assert await webhook.world.ledger.charges() == ()


async def test_what_would_be_refused_is_refused_now_unless_it_runs_later(webhook: Webhook) -> None:
    refused = await webhook.templates.mutate(a_review(workload(), user="mallory"))
    assert refused.message.startswith(
        "spec.template: mallory asked for 1 leaf cell in class test: "
    )
    for later in (workload("CronJob"), workload(suspend=True)):
        answer = await webhook.templates.mutate(a_review(later, user="mallory"))
        assert answer.is_allowed
        assert answer.warnings[0].startswith(
            "cellgate: with current usage, its pods would be refused: mallory asked for"
        )


async def test_problems_of_a_template_have_its_path(webhook: Webhook) -> None:
    content = template(labels={"cellgate.io/vc": "closed"})
    answer = await webhook.templates.mutate(a_review(workload(content=content), user="bob"))
    assert answer.message == (
        'spec.template.metadata.labels[cellgate.io/vc]: VC "closed" is not open to "bob"; it is '
        "open to groups vision"
    )
    open_to_alice = await webhook.templates.mutate(a_review(workload(content=content)))
    assert open_to_alice.is_allowed


async def test_a_kind_that_may_create_members_later_gets_a_hint(webhook: Webhook) -> None:
    def swarm(**metadata: Any) -> dict[str, Any]:
        labels = {"cellgate.io/gang": "x", "cellgate.io/gang-size": "2"}
        parts = {name: {"template": template(labels=labels, **metadata)} for name in ("a", "b")}
        kind = {"apiVersion": "example.org/v1", "kind": "Swarm"}
        return {**kind, "metadata": {"name": "s", "namespace": "lab"}, "spec": {"parts": parts}}

    answer = await webhook.templates.mutate(a_review(swarm()))
    assert list(answer.warnings) == [
        "cellgate: it is not known whether a Swarm creates all members of a gang at once; if it "
        "creates some only after others are Ready, write their number in cellgate.io/late-members"
    ]
    said = swarm(annotations={"cellgate.io/late-members": "1"})
    assert list((await webhook.templates.mutate(a_review(said))).warnings) == []


async def test_a_new_job_tells_its_pods_how_long_they_run(webhook: Webhook) -> None:
    job = workload(activeDeadlineSeconds=3600)
    job["metadata"]["annotations"] = {"cellgate.io/expected-run-time": "4h"}
    stored = stamped(job, await webhook.templates.mutate(a_review(job, groups=("b", "a"))))
    assert stored["spec"]["template"]["metadata"]["annotations"] == {
        **STAMP,
        "cellgate.io/expected-run-time": "4h",
        "cellgate.io/workload-deadline": "3600",
    }
    later = deepcopy(stored)
    later["metadata"]["annotations"]["cellgate.io/expected-run-time"] = "5h"
    answer = await webhook.templates.mutate(a_review(later, old=stored, groups=("b", "a")))
    assert stamped(later, answer)["spec"]["template"] == stored["spec"]["template"]


@pytest.mark.parametrize("is_inside", [False, True])
async def test_an_estimate_that_is_no_duration_is_refused(
    webhook: Webhook, *, is_inside: bool
) -> None:
    wrong = {"cellgate.io/expected-run-time": "soon"}
    job = workload(content=template(annotations=wrong) if is_inside else None)
    if not is_inside:
        job["metadata"]["annotations"] = wrong
    where = "spec.template." if is_inside else ""
    path = f"{where}metadata.annotations[cellgate.io/expected-run-time]"
    answer = await webhook.templates.mutate(a_review(job))
    assert f"{path}: must be a duration such as 90s" in answer.message


async def test_users_do_not_write_the_deadline_of_a_workload(webhook: Webhook) -> None:
    forged = {"cellgate.io/workload-deadline": "60"}
    job = workload(content=template(annotations=forged))
    refused = await webhook.templates.mutate(a_review(job))
    path = "metadata.annotations[cellgate.io/workload-deadline]: is written by Cellgate"
    assert f"spec.template.{path}" in refused.message
    pod = a_new_pod("p").with_gpus(1).annotated("cellgate.io/workload-deadline", "60")
    assert path in (await webhook.pods.mutate(a_review(pod))).message


async def test_users_do_not_raise_the_deadline_by_which_their_gang_starts_before_others(
    webhook: Webhook,
) -> None:
    """Kubernetes lets the deadline of a Job that runs change: a short run would become long."""
    job = workload(activeDeadlineSeconds=600)
    stored = stamped(job, await webhook.templates.mutate(a_review(job)))
    for seconds, is_allowed in ((601, False), (None, False), (599, True)):
        later = deepcopy(stored)
        later["spec"]["activeDeadlineSeconds"] = seconds
        answer = await webhook.templates.mutate(a_review(later, old=stored))
        assert answer.is_allowed is is_allowed
        if not is_allowed:
            assert "spec.activeDeadlineSeconds: must be at most 600: the place" in answer.message
        by_admin = a_review(later, old=stored, user="root")
        assert (await webhook.templates.mutate(by_admin)).is_allowed


async def test_users_do_not_write_the_deadline_later_either(webhook: Webhook) -> None:
    """The template of a suspended Job, and of a Deployment, may change."""
    stored = stamped(workload(), await webhook.templates.mutate(a_review(workload())))
    later = deepcopy(stored)
    annotations = later["spec"]["template"]["metadata"]["annotations"]
    annotations["cellgate.io/workload-deadline"] = "60"
    answer = await webhook.templates.mutate(a_review(later, old=stored))
    path = "metadata.annotations[cellgate.io/workload-deadline]: is written by Cellgate"
    assert f"spec.template.{path}" in answer.message


async def test_the_later_pods_of_a_cron_job_state_its_changed_deadline(webhook: Webhook) -> None:
    """Else they would start before others by a limit that does not end them."""
    content = workload("CronJob")
    content["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] = 600
    stored = stamped(content, await webhook.templates.mutate(a_review(content)))
    for seconds in (86_400, 60, None):
        later = deepcopy(stored)
        later["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] = seconds
        now = stamped(later, await webhook.templates.mutate(a_review(later, old=stored)))
        metadata = now["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
        said = metadata["annotations"].get("cellgate.io/workload-deadline")
        assert said == (None if seconds is None else str(seconds))
