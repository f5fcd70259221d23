"""What reaches us, by the match conditions of our manifests: what does not cannot fail with us."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kube import marks
from kube.read.leaf_demand import MATCHED_LABELS, MATCHED_RESOURCES
from policy.identity.identity import BUILT_IN_CONTROLLERS
from simulation.objects.patch import json_patch
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.policy.documents import HEAD
from tests.support.webhook.conditions import fail_open_guard, hook_of, is_asked
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

GUARD = hook_of("Validating", "pods")
PODS = hook_of("Mutating", "pods")
HOLDS = hook_of("Mutating", "holds")
TEMPLATES = hook_of("Mutating", "templates")
CRON_JOBS = hook_of("Mutating", "cronjobs")
MARKS = [
    ("annotations", marks.SUBMITTER_ANNOTATION),
    ("annotations", "cellgate.io/of-a-later-release"),
    ("annotations", marks.HIVED_SPEC_ANNOTATION),
    *(("annotations", key) for key in marks.PLACEMENT_ANNOTATIONS),
    *((part, key) for part in ("annotations", "labels") for key in marks.GANG_MARKS),
    ("labels", marks.VC_LABEL),
    ("labels", marks.GROUP_LABEL),
]


def _with(pod: PodBuilder, part: str, key: str, value: str | None) -> dict[str, Any]:
    changed = deepcopy(dict(pod))
    changed["metadata"][part].pop(key, None)
    if value is not None:
        changed["metadata"][part][key] = value
    return changed


@pytest.mark.parametrize(("part", "key"), MARKS)
def test_a_mark_that_is_written_changed_or_removed_is_ours_to_judge(part: str, key: str) -> None:
    pod = a_pod().with_gpus(1)
    one, two = _with(pod, part, key, "one"), _with(pod, part, key, "two")
    assert is_asked(GUARD, one, old=dict(pod))
    assert is_asked(GUARD, two, old=one)
    assert is_asked(GUARD, dict(pod), old=one)
    assert not is_asked(GUARD, one, old=one)


def test_a_hold_that_is_set_changed_or_lifted_is_recorded() -> None:
    pod = a_pod().with_gpus(1)
    one = _with(pod, "annotations", marks.HOLD_ANNOTATION, "one")
    empty = _with(pod, "annotations", marks.HOLD_ANNOTATION, "")
    assert is_asked(HOLDS, one, old=dict(pod))
    assert is_asked(HOLDS, dict(pod), old=one)
    assert is_asked(HOLDS, empty, old=dict(pod))
    assert not is_asked(HOLDS, one, old=one)
    other = _with(pod, "annotations", "cni.projectcalico.org/podIP", "10.0.0.1")
    assert not is_asked(HOLDS, other, old=dict(pod)), "all other changes do not depend on us"


@pytest.mark.parametrize("key", sorted(MATCHED_LABELS))
def test_a_pod_without_devices_is_ours_if_it_carries_the_label_of_a_gang(key: str) -> None:
    pod = a_pod()
    launcher = _with(pod, "labels", key, "2")
    assert is_asked(PODS, launcher)
    assert not is_asked(PODS, dict(pod))
    assert is_asked(GUARD, launcher)
    assert is_asked(GUARD, dict(pod), old=launcher), "the label must not be removed"
    job = {"spec": {"template": {"metadata": launcher["metadata"], "spec": launcher["spec"]}}}
    assert is_asked(TEMPLATES, job)
    assert is_asked(CRON_JOBS, {"spec": {"jobTemplate": job}})
    del job["spec"]["template"]["metadata"]
    assert not is_asked(TEMPLATES, job)


@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_what_others_note_on_our_pods_does_not_depend_on_us(part: str) -> None:
    pod = a_pod().with_gpus(1).in_vc("lab").annotated(marks.CLASS_ANNOTATION, "prod").gated()
    noted = _with(pod, part, "cni.projectcalico.org/podIP", "10.0.0.1")
    assert not is_asked(GUARD, noted, old=dict(pod))
    assert not is_asked(GUARD, dict(pod), old=noted)
    bare = deepcopy(noted)
    del bare["metadata"]["annotations"], bare["metadata"]["labels"]
    assert not is_asked(GUARD, bare, old=deepcopy(bare))


def test_only_our_gate_is_ours() -> None:
    pod = a_pod().with_gpus(1)
    assert is_asked(GUARD, dict(pod), old=dict(pod.gated()))
    gates = [{"name": "example.org/wait"}, {"name": marks.QUEUED_GATE}]
    both = pod.with_spec(schedulingGates=gates)
    assert not is_asked(GUARD, dict(pod.gated()), old=dict(both))


POLICIES = {
    "rules": f"{HEAD}Rules\nrules: [{{priority: prod, then: oppo, note: experiments}}]",
    "quotas": f"""{HEAD}Quotas
groups: [{{name: vision, limits: {{leafCells: 4}}, over: queue, users: [{{name: alice}}]}}]
""",
}


async def _stored(pod: PodBuilder) -> PodBuilder:
    answer = await Webhook(POLICIES, gates_all=True).pods.mutate(a_review(pod))
    return PodBuilder(json_patch(dict(pod), list(answer.patch)))


@pytest.mark.parametrize(
    ("class_name", "gpus", "asked"),
    [("test", 1, False), ("prod", 1, True), ("test", 8, True)],
    ids=["as it was asked for", "lowered", "queued for quota"],
)
async def test_only_new_pods_that_there_is_something_to_say_about_are_asked_about_again(
    class_name: str, gpus: int, asked: bool
) -> None:
    """Each call makes a creation slower."""
    pod = a_pod().with_gpus(gpus).of_class(class_name).in_vc("lab").in_gang("bert", size=1)
    stored = await _stored(pod)
    assert stored["spec"]["schedulingGates"] == [{"name": marks.QUEUED_GATE}]
    assert is_asked(GUARD, dict(stored)) is asked


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod.of_class("another"),
        lambda pod: pod.with_gpus(2),
        lambda pod: pod.with_container({"amd.com/gpu": "1"}, name="more"),
        lambda pod: pod.with_sidecar({"nvidia.com/gpu": "1"}),
        lambda pod: pod.in_vc("la"),
        lambda pod: pod.wanting("A100"),
        lambda pod: pod.labelled(marks.KUEUE_GROUP, "x"),
        lambda pod: pod.annotated(marks.HIVED_SPEC_ANNOTATION, "x"),
    ],
    ids=["class", "amount", "container", "sidecar", "VC", "leaf type", "gang", "HiveD"],
)
async def test_a_new_pod_that_another_webhook_changed_is_asked_about_again(
    change: Callable[[PodBuilder], PodBuilder],
) -> None:
    stored = await _stored(a_pod().with_gpus(1).of_class("test").in_vc("lab"))
    assert not is_asked(GUARD, dict(stored))
    assert not is_asked(GUARD, dict(stored.labelled("a", "b").annotated("c", "d")))
    assert is_asked(GUARD, dict(change(stored)))


@pytest.mark.parametrize("key", sorted({*marks.GANG_MARKS, marks.VC_LABEL}))
async def test_no_author_writes_into_the_line_what_another_webhook_will_do(key: str) -> None:
    """An author may know of a later webhook that changes pods as their authors wish."""
    foreseen = f"x, main=8 nvidia.com/gpu, {marks.VC_LABEL}=other, "
    pod = a_pod().with_gpus(1).of_class("test").annotated(key, foreseen)
    answer = await Webhook(gates_all=True).pods.mutate(a_review(pod))
    if answer.is_allowed:
        stored = PodBuilder(json_patch(dict(pod), list(answer.patch)))
        assert is_asked(GUARD, dict(stored.with_gpus(8)))
        assert is_asked(GUARD, dict(stored.in_vc("other")))


def test_what_was_let_through_undecided_is_not_refused_a_moment_later() -> None:
    """Where the admin chose so; elsewhere it is a pod that another webhook changed after us."""
    guard, pod = fail_open_guard(), a_pod().with_gpus(1)
    decided = pod.annotated(marks.DECISION_ANNOTATION, "x")
    assert (guard["failurePolicy"], GUARD["failurePolicy"]) == ("Ignore", "Fail")
    assert is_asked(GUARD, dict(pod))
    assert not is_asked(guard, dict(pod))
    assert is_asked(guard, dict(decided))
    assert is_asked(guard, dict(decided), old=dict(pod))


def test_a_pod_whose_author_wrote_a_decision_is_reviewed() -> None:
    hook, pod = hook_of("Mutating", "pods"), a_pod()
    assert is_asked(hook, dict(pod.with_gpus(1)))
    assert not is_asked(hook, dict(pod))
    assert not is_asked(hook, dict(pod.annotated("example.org/note", "x")))
    assert is_asked(hook, dict(pod.annotated(marks.DECISION_ANNOTATION, "x")))


def _workload(**spec: Any) -> dict[str, Any]:
    pod = a_pod().with_gpus(1)
    template = {"metadata": {"annotations": {}}, "spec": pod["spec"]}
    return {"metadata": {"finalizers": ["a"]}, "spec": {"template": template, **spec}}


def _cron_job(**spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"jobTemplate": _workload(), **spec}}


def test_scaling_suspending_and_finalizers_do_not_depend_on_us() -> None:
    old = _workload(replicas=1, suspend=True)
    new = {**_workload(replicas=5, suspend=False), "status": {"ready": 1}}
    new["metadata"] = {"annotations": {"example.org/note": "x"}, "labels": {"a": "b"}}
    assert is_asked(TEMPLATES, new)
    assert not is_asked(TEMPLATES, new, old=old)
    assert is_asked(CRON_JOBS, _cron_job())
    assert not is_asked(CRON_JOBS, _cron_job(suspend=True), old=_cron_job(suspend=False))


def _ray_cluster(resource: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {resource: "1"}}}
    group = {"template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "a"}, "spec": {"workerGroupSpecs": [group], **spec}}


@pytest.mark.parametrize("resource", sorted(MATCHED_RESOURCES))
def test_kinds_of_others_are_looked_at_if_they_mention_leaf_cells(resource: str) -> None:
    """Wherever: the Identity document says where their templates are, the API server cannot."""
    hook, ours = hook_of("Mutating", "workloads"), _ray_cluster(resource)
    assert is_asked(hook, ours)
    assert is_asked(hook, _ray_cluster(resource, replicas=2), old=ours)
    assert not is_asked(hook, {**ours, "status": {"ready": 1}}, old=ours)
    other = _ray_cluster("cpu")
    assert is_asked(hook, ours, old=other)
    assert not is_asked(hook, other)
    assert not is_asked(hook, _ray_cluster("cpu", replicas=2), old=other)
    assert not is_asked(hook, {"metadata": {"name": "a"}})


def test_kinds_of_others_are_looked_at_if_they_name_a_submitter() -> None:
    """Also without leaf cells: the name decides about shapes of pods that are created later."""
    hook, plain = hook_of("Mutating", "stamped-workloads"), _ray_cluster("cpu")
    named = deepcopy(plain)
    template = named["spec"]["workerGroupSpecs"][0]["template"]
    template["metadata"] = {"annotations": {marks.SUBMITTER_ANNOTATION: "alice"}}
    other = deepcopy(named)
    other["spec"]["workerGroupSpecs"][0]["template"]["metadata"]["annotations"] = {
        marks.SUBMITTER_ANNOTATION: "bob"
    }
    assert hook["failurePolicy"] == "Fail"
    assert not is_asked(hook, plain)
    assert not is_asked(hook, _ray_cluster("cpu", replicas=2), old=plain)
    assert is_asked(hook, named)
    assert is_asked(hook, named, old=plain)
    assert is_asked(hook, other, old=named)
    assert not is_asked(hook, {**named, "status": {"ready": 1}}, old=named)
    own = {**named, "metadata": {"annotations": {marks.SUBMITTER_ANNOTATION: "bob"}}}
    assert is_asked(hook, own, old=named)
    assert not is_asked(hook, own, old=own)


@pytest.mark.parametrize("hook", [TEMPLATES, CRON_JOBS], ids=["template", "cronjob"])
@pytest.mark.parametrize("key", [marks.SUBMITTER_ANNOTATION, marks.SUBMITTER_GROUPS_ANNOTATION])
def test_another_submitter_or_other_groups_are_looked_at_without_leaf_cells(
    hook: dict[str, Any], key: str
) -> None:
    stamp = {marks.SUBMITTER_ANNOTATION: "alice", marks.SUBMITTER_GROUPS_ANNOTATION: "[]"}

    def workload(image: str, **changed: str) -> dict[str, Any]:
        spec = {"containers": [{"name": "main", "image": image}]}
        template = {"metadata": {"annotations": {**stamp, **changed}}, "spec": spec}
        inner = {"metadata": {}, "spec": {"template": template}}
        return {"metadata": {}, "spec": {"jobTemplate": inner}} if hook is CRON_JOBS else inner

    assert not is_asked(hook, workload("new"), old=workload("old"))
    assert is_asked(hook, workload("new", **{key: "other"}), old=workload("old"))


def test_whom_we_believe_anyway_does_not_wait_for_us() -> None:
    asked = {user for user in BUILT_IN_CONTROLLERS if is_asked(TEMPLATES, _workload(), user=user)}
    makers = ("cronjob-controller", "deployment-controller")
    accounts = {f"system:serviceaccount:kube-system:{name}" for name in makers}
    assert BUILT_IN_CONTROLLERS - asked == {"system:kube-controller-manager", *accounts}
    assert is_asked(TEMPLATES, _workload(), user="system:serviceaccount:lab:cronjob-controller")


def test_a_changed_template_is_looked_at() -> None:
    old, new = _workload(), _workload()
    new["spec"]["template"]["metadata"]["annotations"][marks.SUBMITTER_ANNOTATION] = "bob"
    assert is_asked(TEMPLATES, new, old=old)
    assert is_asked(CRON_JOBS, {"spec": {"jobTemplate": new}}, old={"spec": {"jobTemplate": old}})
    unmanaged = deepcopy(old)
    del unmanaged["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert is_asked(TEMPLATES, old, old=unmanaged)
    assert not is_asked(TEMPLATES, unmanaged, old=old)


@pytest.mark.parametrize(
    ("user", "group", "is_free"),
    [
        ("root", "system:masters", True),
        ("root", "kubeadm:cluster-admins", True),
        ("any", "system:serviceaccounts:kube-system", True),
        ("system:kube-controller-manager", "system:authenticated", True),
        ("alice", "system:authenticated", False),
    ],
)
def test_policies_of_admins_and_controllers_pass_while_we_are_down(
    user: str, group: str, is_free: bool
) -> None:
    """A namespace that is being deleted must not wait for a webhook that went with it."""
    strict = hook_of("Validating", "policies")
    free = hook_of("Validating", "policies-of-admins")
    assert (strict["failurePolicy"], free["failurePolicy"]) == ("Fail", "Ignore")
    groups = ("system:authenticated", group)
    assert is_asked(free, {}, user=user, groups=groups) == is_free
    assert is_asked(strict, {}, user=user, groups=groups) == (not is_free)
