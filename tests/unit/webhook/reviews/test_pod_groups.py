"""Native gangs: a PodGroup and its pods have one class, whatever is decided."""

import pytest

from simulation.objects.patch import json_patch
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pod_groups import PodGroupBuilder, a_group_member, a_pod_group
from tests.support.kube.pods import a_new_pod, a_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {user: "^mallory$", then: fail}
- {priority: prod, user: "^alice$", then: oppo, note: experiments}
- {priority: test, current: "> 8", then: oppo, note: large gangs are opportunistic}
"""


async def test_a_group_gets_the_class_that_its_pods_will_get() -> None:
    webhook = Webhook({"rules": RULES})
    group = a_pod_group().of_class("prod")
    answer = await webhook.templates.mutate(a_review(group))
    stored = json_patch(group, list(answer.patch))
    assert stored["spec"]["priorityClassName"] == "oppo"
    assert "priority" not in stored["spec"]
    assert answer.warnings == ("cellgate: rule 2 lowers class prod to oppo: experiments",)
    webhook.groups.upsert(stored)
    for name in ("a", "b"):
        pod = a_group_member(name).of_class("prod")
        admitted = await webhook.pods.mutate(a_review(pod))
        assert json_patch(dict(pod), list(admitted.patch))["spec"]["priorityClassName"] == "oppo"
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.leaf_count, live.charge.class_name) == (4, "oppo")


async def test_groups_of_others_are_left_alone() -> None:
    webhook = Webhook({"rules": RULES})
    for group in (a_pod_group(), a_pod_group().of_class("batch-cpu")):
        answer = await webhook.templates.mutate(a_review(group))
        assert (answer.is_allowed, list(answer.patch)) == (True, [])


async def test_a_group_that_would_be_refused_is() -> None:
    answer = await Webhook({"rules": RULES}).templates.mutate(
        a_review(a_pod_group().of_class("prod"), user="mallory")
    )
    assert "refused by rule 1" in answer.message


async def test_pods_that_would_get_another_class_are_refused() -> None:
    webhook = Webhook({"rules": RULES})
    webhook.groups.upsert(a_pod_group().of_class("test"))
    refused = await webhook.pods.mutate(a_review(a_group_member(gpus=8)))
    assert refused.message == (
        'spec.schedulingGroup.podGroupName: would have class "oppo", but its PodGroup has "test", '
        "which cannot be changed; delete the PodGroup and create it again with the annotation "
        'cellgate.io/leaf-cells: "8", or with class "oppo"'
    )
    assert await webhook.world.ledger.charges() == ()


async def test_pods_must_not_be_lower_than_their_group() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group().of_class("test"))
    refused = await webhook.pods.mutate(a_review(a_group_member().of_class("oppo")))
    assert refused.message == (
        'spec.priorityClassName: class "oppo" is lower than class "test" of PodGroup "bert": all '
        "pods of a PodGroup must have its class"
    )


async def test_a_group_must_exist_and_have_a_class() -> None:
    webhook = Webhook()
    missing = await webhook.pods.mutate(a_review(a_group_member()))
    assert 'PodGroup "bert" does not exist; create it before its pods' in missing.message
    webhook.groups.upsert(a_pod_group())
    unclassed = await webhook.pods.mutate(a_review(a_group_member()))
    assert 'PodGroup "bert" has no class; create it with one of prod, test, oppo' in (
        unclassed.message
    )


async def test_a_group_may_grow() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group(size=2).of_class("test"))
    await webhook.pods.mutate(a_review(a_group_member("a")))
    webhook.groups.upsert(a_pod_group(size=3).of_class("test"))
    assert (await webhook.pods.mutate(a_review(a_group_member("b")))).is_allowed


QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, limits: {leafCells: 5}, over: fail, users: [{name: alice}]}]
"""


@pytest.mark.parametrize("form", ["native", "coscheduling", "label", "unknown"])
async def test_members_beyond_what_a_group_needs_stay_within_the_quotas(form: str) -> None:
    webhook = Webhook({"quotas": QUOTAS})
    webhook.groups.upsert(a_pod_group(size=2).of_class("test"))
    other = {"metadata": {"name": "bert", "namespace": "lab"}, "spec": {"minMember": 2}}
    if form == "coscheduling":
        webhook.other_groups.upsert(other)
    light = "pod-group.scheduling.sigs.k8s.io"
    marks = {
        "native": {},
        "coscheduling": {"scheduling.x-k8s.io/pod-group": "bert"},
        "label": {f"{light}/name": "bert", f"{light}/min-available": "1"},
        "unknown": {"scheduling.x-k8s.io/pod-group": "bert"},
    }
    answers = []
    for index in range(7):
        pod = a_pod(f"bert-{index}").with_gpus(1)
        pod = pod.in_native_gang("bert") if form == "native" else pod
        for key, value in marks[form].items():
            pod = pod.labelled(key, value)
        answers.append(await webhook.pods.mutate(a_review(pod)))
    assert [answer.is_allowed for answer in answers] == [True] * 5 + [False] * 2
    assert "Group vision holds 5 leaf cells and 1 more is asked for" in answers[-1].message
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.leaf_count == 5


async def test_they_do_so_too_while_the_ledger_is_away() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    webhook.groups.upsert(a_pod_group(size=2).of_class("test"))
    webhook.world.ledger.is_away = True
    reviews = [a_review(a_group_member(f"bert-{index}")) for index in range(7)]
    answers = [await webhook.pods.mutate(review) for review in reviews]
    assert [answer.is_allowed for answer in answers] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(("class_name", "fit"), [("test", 5), ("oppo", 7)])
async def test_only_in_the_class_of_those_over_quota_a_gang_grows_beyond_it(
    class_name: str, fit: int
) -> None:
    webhook = Webhook({"quotas": QUOTAS.replace("over: fail", "over: oppo")})
    webhook.groups.upsert(a_pod_group(size=2).of_class(class_name))
    reviews = [a_review(a_group_member(f"bert-{index}")) for index in range(7)]
    answers = [await webhook.pods.mutate(review) for review in reviews]
    assert [answer.is_allowed for answer in answers] == [index < fit for index in range(7)]


async def test_groups_of_other_schedulers_say_how_large_a_gang_is() -> None:
    webhook = Webhook()
    webhook.other_groups.upsert(
        {"metadata": {"name": "bert", "namespace": "lab"}, "spec": {"minMember": 3}}
    )
    for name in ("a", "b", "c"):
        pod = a_pod(name).with_gpus(2).labelled("scheduling.x-k8s.io/pod-group", "bert")
        assert (await webhook.pods.mutate(a_review(pod))).is_allowed
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.leaf_count == 6


async def test_a_label_may_say_it_too() -> None:
    webhook = Webhook()
    key = "pod-group.scheduling.sigs.k8s.io"
    pod = a_pod().with_gpus(2).labelled(f"{key}/name", "bert").labelled(f"{key}/min-available", "4")
    assert (await webhook.pods.mutate(a_review(pod))).is_allowed
    (live,) = await webhook.world.ledger.charges()
    assert live.charge.leaf_count == 8


def a_job_group(class_name: str | None = "prod", *, size: int = 4) -> PodGroupBuilder:
    group = a_pod_group(size=size).controlled_by("Job", "train")
    return group if class_name is None else group.of_class(class_name)


def job_of_alice(class_name: str | None, *, gpus: int) -> ObjectBuilder:
    """A Job that alice has submitted."""
    pod = a_new_pod("unused").with_gpus(gpus).submitted_by("alice", "system:authenticated")
    return a_workload(template=a_template(pod.of_class(class_name) if class_name else pod))


CONTROLLER = "system:serviceaccount:kube-system:job-controller"
PYTORCH = """
apiVersion: cellgate.io/v1
kind: Identity
templates:
- {apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: spec.pytorchReplicaSpecs.*.template}
"""


async def test_a_group_of_the_job_controller_gets_the_class_that_the_job_gets() -> None:
    webhook = Webhook({"rules": RULES}, jobs={"train": job_of_alice("test", gpus=4)})
    group = a_job_group("test")
    answer = await webhook.templates.mutate(a_review(group, user=CONTROLLER))
    stored = json_patch(group, list(answer.patch))
    assert stored["spec"]["priorityClassName"] == "oppo"
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.user, live.charge.leaf_count) == ("alice", 16)
    webhook.groups.upsert(stored)
    pod = a_group_member(gpus=4).of_class("test").annotated("cellgate.io/submitter", "alice")
    admitted = await webhook.pods.mutate(a_review(pod, user=CONTROLLER))
    assert json_patch(dict(pod), list(admitted.patch))["spec"]["priorityClassName"] == "oppo"
    assert await webhook.world.ledger.charges() == (live,)


async def test_the_places_that_a_group_of_a_job_is_charged_for_are_for_its_pods() -> None:
    webhook = Webhook(jobs={"train": job_of_alice("test", gpus=2)})
    await webhook.templates.mutate(a_review(a_job_group("test", size=2), user=CONTROLLER))
    webhook.groups.upsert(a_pod_group(size=2).of_class("test"))
    held = []
    for index in range(3):
        pod = a_group_member(f"bert-{index}", gpus=2).annotated("cellgate.io/submitter", "alice")
        assert (await webhook.pods.mutate(a_review(pod, user=CONTROLLER))).is_allowed
        (live,) = await webhook.world.ledger.charges()
        held.append((live.charge.leaf_count, live.charge.places))
    assert held == [(4, 1), (4, 0), (6, 0)]


async def test_a_group_of_a_job_without_a_class_gets_the_default() -> None:
    webhook = Webhook(jobs={"train": job_of_alice(None, gpus=1)})
    answer = await webhook.templates.mutate(a_review(a_job_group(None), user=CONTROLLER))
    assert answer.patch[0]["value"] == "test"


async def test_a_dry_run_of_a_group_charges_nothing() -> None:
    webhook = Webhook(jobs={"train": job_of_alice("test", gpus=1)})
    review = a_review(a_job_group("test"), user=CONTROLLER, dry_run=True)
    assert (await webhook.templates.mutate(review)).is_allowed
    assert await webhook.world.ledger.charges() == ()


async def test_a_group_whose_job_is_not_known_or_not_managed_is_left_alone() -> None:
    jobs = {"train": {"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}}
    for webhook in (Webhook(), Webhook(jobs=jobs)):
        answer = await webhook.templates.mutate(a_review(a_job_group(), user=CONTROLLER))
        assert (answer.is_allowed, list(answer.patch)) == (True, [])


async def test_pods_of_a_group_that_is_no_gang_are_charged_one_by_one() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group().of_class("test").without_gang())
    for name in ("a", "b"):
        pod = a_group_member(name, gpus=2)
        answer = await webhook.pods.mutate(a_review(pod))
        stored = json_patch(dict(pod), list(answer.patch))
        assert stored["metadata"]["annotations"]["cellgate.io/charged-alone"] == "true"
    charged = [live.charge for live in await webhook.world.ledger.charges()]
    assert [(one.gang.name, one.leaf_count) for one in charged] == [("a", 2), ("b", 2)]


async def test_no_author_marks_a_pod_as_charged_alone() -> None:
    webhook = Webhook()
    pod = a_pod("a").with_gpus(1).in_gang("bert", size=2)
    pod = pod.annotated("cellgate.io/charged-alone", "true")
    answer = await webhook.pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    assert "cellgate.io/charged-alone" not in stored["metadata"]["annotations"]
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.gang.name, live.charge.leaf_count) == ("bert", 2)


async def test_the_group_of_a_job_that_is_no_gang_is_not_charged() -> None:
    webhook = Webhook({"rules": RULES}, jobs={"train": job_of_alice("prod", gpus=1)})
    group = a_job_group().without_gang()
    answer = await webhook.templates.mutate(a_review(group, user=CONTROLLER))
    assert answer.patch[0]["value"] == "oppo"
    assert await webhook.world.ledger.charges() == ()


async def test_a_pod_tells_what_it_asked_for_and_why_it_got_the_class_of_its_group() -> None:
    webhook = Webhook({"rules": RULES})
    webhook.groups.upsert(a_pod_group().of_class("oppo"))
    pod = a_group_member().of_class("prod")
    answer = await webhook.pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    assert stored["metadata"]["annotations"]["cellgate.io/requested-class"] == "prod"
    assert list(answer.warnings) == ["cellgate: rule 2 lowers class prod to oppo: experiments"]


async def test_a_pod_has_the_class_of_its_group_also_where_a_higher_one_would_do() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group().of_class("oppo"))
    pod = a_group_member().of_class("prod")
    answer = await webhook.pods.mutate(a_review(pod))
    assert json_patch(dict(pod), list(answer.patch))["spec"]["priorityClassName"] == "oppo"


async def test_our_labels_name_the_gang_of_a_pod_whose_group_is_none() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group().of_class("test").without_gang())
    for name in ("a", "b"):
        pod = a_group_member(name, gpus=2).in_gang("train", size=2)
        answer = await webhook.pods.mutate(a_review(pod))
        stored = json_patch(dict(pod), list(answer.patch))
        assert stored["metadata"]["annotations"]["cellgate.io/gang-by"] == "labels"
        assert "cellgate.io/charged-alone" not in stored["metadata"]["annotations"]
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.gang.name, live.charge.leaf_count) == ("train", 4)


async def test_a_native_gang_comes_before_our_labels_whatever_its_author_writes() -> None:
    webhook = Webhook()
    webhook.groups.upsert(a_pod_group(size=3).of_class("test"))
    pod = a_group_member("a", gpus=2).in_gang("train", size=2)
    answer = await webhook.pods.mutate(a_review(pod.annotated("cellgate.io/gang-by", "labels")))
    assert answer.is_allowed
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.gang.name, live.charge.leaf_count) == ("bert", 6)


async def test_a_group_of_another_workload_gets_the_lowest_class_of_its_templates() -> None:
    """It is not charged before its pods: which template makes them is not known."""
    pods = [a_new_pod("unused").with_gpus(gpus).submitted_by("alice") for gpus in (1, 4)]
    templates = [{"template": a_template(pod.of_class("test"))} for pod in pods]
    job = {"spec": {"pytorchReplicaSpecs": dict(zip(("Master", "Worker"), templates, strict=True))}}
    webhook = Webhook({"rules": RULES, "identity": PYTORCH}, jobs={"train": job})
    group = a_pod_group().of_class("test")
    group = group.controlled_by("PyTorchJob", "train", api_version="kubeflow.org/v1")
    answer = await webhook.templates.mutate(a_review(group, user=CONTROLLER))
    assert json_patch(group, list(answer.patch))["spec"]["priorityClassName"] == "oppo"
    assert await webhook.world.ledger.charges() == ()
