"""What can never start is told, or refused, when it is created; what may start is not mentioned."""

from collections.abc import Mapping
from typing import Any

import pytest

from policy.cluster.document import LiveNode
from policy.submission import NodeName
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.policy.documents import HEAD
from tests.support.state.charges import TERM
from tests.support.twins.seen_nodes import MemorySeenNodes
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
REFUSE = f"{HEAD}Rules\nrules: []\nimpossible: refuse\n"
LABELS = {"cellgate.io/vc": "lab"}


async def a_webhook(cluster: str, *, nodes: int = 4, **policies: str) -> Webhook:
    """A webhook that knows of so many nodes of eight leaf cells."""
    seen = MemorySeenNodes()
    live = [
        LiveNode(
            name=NodeName(f"n{index}"),
            labels={"nvidia.com/gpu.product": "A100"},
            leaf_counts={"nvidia.com/gpu": 8},
            cpu=64_000 + index,
            memory=2**38,
        )
        for index in range(nodes)
    ]
    await seen.observe(live, gone=[], term=TERM)
    webhook = Webhook({"cluster": cluster, **policies}, seen=seen)
    await webhook.facts.refresh()
    return webhook


def a_pod(gpus: int, *, class_name: str = "test", labels: Mapping[str, str] = LABELS) -> Any:
    pod = a_new_pod("bert").with_gpus(gpus).of_class(class_name)
    return pod.with_metadata(labels=dict(labels))


def a_job(
    gpus: int,
    *,
    kind: str = "Job",
    labels: Mapping[str, str] = LABELS,
    class_name: str = "test",
    **spec: Any,
) -> dict[str, Any]:
    template = a_template(a_pod(gpus, labels=labels, class_name=class_name))
    return a_workload(kind, "bert", template=template, **spec)


def said(answer: ReviewResponse) -> list[str]:
    assert answer.is_allowed, answer.message
    return [line.removeprefix("cellgate: ") for line in answer.warnings]


@pytest.mark.parametrize("text", [hived_text(lab=2), derived_text(lab=2)], ids=["hived", "derived"])
async def test_a_gang_larger_than_its_vc_is_told_and_may_be_refused(text: str) -> None:
    gang = LABELS | {"cellgate.io/gang": "bert", "cellgate.io/gang-size": "3"}
    webhook = await a_webhook(text)
    sentence = (
        "can never start: it needs 24 leaf cells, but VC lab was promised at most 16 that one gang "
        "can use; make it smaller, or use an opportunistic class"
    )
    job = a_job(8, labels=gang, parallelism=3, completions=3)
    assert said(await webhook.templates.mutate(a_review(job))) == [sentence]
    borrowing = a_job(8, labels=gang, class_name="oppo", parallelism=3)
    told = said(await webhook.templates.mutate(a_review(borrowing)))
    assert not any("can never start" in line for line in told)

    strict = await a_webhook(text, rules=REFUSE)
    for one in (job, a_job(8, labels=gang, kind="CronJob", parallelism=3)):
        refused = await strict.templates.mutate(a_review(one))
        assert refused.message.endswith(f"template: {sentence}")


async def test_a_pod_that_requests_more_than_any_node_has_is_told_and_may_be_refused() -> None:
    def requesting(cpu: str, memory: str) -> Any:
        pod = a_pod(8)
        pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": memory}
        return pod

    webhook = await a_webhook(derived_text(lab=2))
    assert said(await webhook.pods.mutate(a_review(requesting("64003m", "256Gi")))) == []
    cpu = (
        "can never start: one pod requests 65 CPUs, but the largest node has 64.003 CPUs; request "
        "less"
    )
    memory = (
        "can never start: one pod requests 257Gi of memory, but the largest node has 256Gi of "
        "memory; request less"
    )
    assert said(await webhook.pods.mutate(a_review(requesting("65", "257Gi")))) == [cpu, memory]
    job = a_workload("Job", "bert", template=a_template(requesting("65", "1Gi")))
    assert said(await webhook.templates.mutate(a_review(job))) == [cpu]

    strict = await a_webhook(derived_text(lab=2), rules=REFUSE)
    assert (await strict.templates.mutate(a_review(job))).message.endswith(f"template: {cpu}")
    # Nodes that are expected may have more.
    expected = "expectedNodes: [{leafType: A100, nodes: 1, leafCells: 8}]"
    coming = await a_webhook(f"{derived_text(lab=2)}\n{expected}\n", rules=REFUSE)
    assert said(await coming.templates.mutate(a_review(job))) == []


SHAPE = f"{HEAD}Shaping\nshapes:\n- {{name: all, fixedRequests: {{cpu: COUNT}}, env: {{A: b}}}}\n"


async def test_what_a_shape_sets_counts_instead_of_what_the_pod_requests() -> None:
    pod = a_pod(8)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "65"}
    webhook = await a_webhook(derived_text(lab=2), shaping=SHAPE.replace("COUNT", "64"))
    told = said(await webhook.pods.mutate(a_review(pod)))
    assert not any("can never start" in line for line in told)
    webhook = await a_webhook(derived_text(lab=2), shaping=SHAPE.replace("COUNT", "72"))
    told = said(await webhook.pods.mutate(a_review(a_pod(8))))
    assert any("one pod requests 72 CPUs" in line for line in told)


async def test_a_gang_that_may_start_is_not_mentioned() -> None:
    webhook = await a_webhook(derived_text(lab=2), rules=REFUSE)
    gang = LABELS | {"cellgate.io/gang": "bert", "cellgate.io/gang-size": "2"}
    assert said(await webhook.pods.mutate(a_review(a_pod(8, labels=gang)))) == []


async def test_other_members_may_have_fewer_leaf_cells_unless_one_template_makes_all() -> None:
    webhook = await a_webhook(derived_text(lab=1), rules=REFUSE)
    gang = LABELS | {"cellgate.io/gang": "bert", "cellgate.io/gang-size": "2"}
    assert said(await webhook.pods.mutate(a_review(a_pod(8, labels=gang)))) == []
    owned = a_job(8, labels=gang, parallelism=1)
    owned["metadata"]["ownerReferences"] = [{"kind": "MPIJob", "controller": True}]
    assert said(await webhook.templates.mutate(a_review(owned))) == []
    of_volcano = {**a_job(8, labels=gang), "apiVersion": "batch.volcano.sh/v1alpha1"}
    assert said(await webhook.templates.mutate(a_review(of_volcano))) == []


async def test_a_refused_pod_is_not_charged() -> None:
    strict = await a_webhook(derived_text(lab=1), rules=REFUSE)
    assert "can never start" in (await strict.pods.mutate(a_review(a_pod(16)))).message
    assert await strict.world.ledger.charges() == ()


async def test_what_a_controller_creates_from_a_checked_template_is_not_refused() -> None:
    webhook = await a_webhook(derived_text(lab=1), rules=REFUSE)
    pod = a_pod(16)
    pod["metadata"]["annotations"] = {"cellgate.io/submitter": "alice"}
    assert (await webhook.pods.mutate(a_review(pod, user=JOB_CONTROLLER))).is_allowed


async def test_a_pod_larger_than_any_node_and_an_unknown_type_are_told() -> None:
    webhook = await a_webhook(derived_text(lab=4))
    assert said(await webhook.pods.mutate(a_review(a_pod(16)))) == [
        "can never start: one pod asks for 16 leaf cells, but the largest cell of VC lab within "
        "one node has 8; divide the work among more pods"
    ]
    typo = a_pod(1, labels=LABELS | {"cellgate.io/leaf-type": "A1000"})
    assert said(await webhook.pods.mutate(a_review(typo))) == [
        "can never start: no node has leaf type A1000; the label cellgate.io/leaf-type may be one "
        "of A100"
    ]


async def test_what_is_not_known_is_not_said() -> None:
    unread = Webhook({"cluster": derived_text(lab=1)}, seen=MemorySeenNodes())
    assert said(await unread.pods.mutate(a_review(a_pod(64)))) == []
    bootstrap = await a_webhook(derived_text(lab=1), nodes=0, rules=REFUSE)
    assert said(await bootstrap.pods.mutate(a_review(a_pod(64)))) == []
    changed = await a_webhook(derived_text(lab=1), rules=REFUSE)
    changed.sink.upsert(a_policy_map("cluster", derived_text(lab=3)))  # nodes are not read yet
    assert said(await changed.pods.mutate(a_review(a_pod(64)))) == []


async def test_a_gang_that_its_quota_never_lets_in_is_told() -> None:
    quotas = f"{HEAD}Quotas\ngroups: [{{name: v, limits: {{leafCells: 8}}, over: queue, users: [{{name: alice}}]}}]"  # noqa: E501 - one line of YAML
    webhook = await a_webhook(derived_text(lab=4), quotas=quotas)
    gang = LABELS | {"cellgate.io/gang": "bert", "cellgate.io/gang-size": "2"}
    job = a_job(8, labels=gang, parallelism=2)
    waits, never = said(await webhook.templates.mutate(a_review(job)))
    assert waits.startswith("waits for room in the quotas of group v")
    assert never == (
        "can never start: it needs 16 leaf cells, but the quota of group v is 8; make it smaller"
    )


async def test_a_job_that_does_not_match_its_gang_is_told() -> None:
    webhook = await a_webhook(derived_text(lab=4))
    gang = LABELS | {"cellgate.io/gang-size": "4"}
    job = a_job(1, labels=gang, parallelism=2, completions=4, activeDeadlineSeconds=60)
    sentences = said(await webhook.templates.mutate(a_review(job)))
    assert sentences == [
        "can never start: cellgate.io/gang-size is 4, but parallelism is 2, so it never has 4 pods "
        "at once; use the same number for both",
        "spec.activeDeadlineSeconds (60) counts the time that the Job waits, too; "
        "spec.template.spec.activeDeadlineSeconds counts from the start of each pod",
    ]
    part = a_job(1, labels=gang, parallelism=2, completions=2)
    part["metadata"]["ownerReferences"] = [{"kind": "JobSet", "controller": True}]
    assert said(await webhook.templates.mutate(a_review(part))) == []
    same = await webhook.templates.mutate(a_review(job, old=job))
    assert said(same) == []
    strict = await a_webhook(derived_text(lab=4), rules=REFUSE)
    refused = await strict.templates.mutate(a_review(job))
    assert not refused.is_allowed
    assert refused.message == sentences[0]


async def test_a_namespace_without_a_vc_is_told_which_label_is_missing() -> None:
    webhook = await a_webhook(derived_text(lab=4, other=1))
    answer = await webhook.pods.mutate(a_review(a_pod(1, labels={})))
    assert answer.message.endswith(
        'there is no VC "default"; neither the pod nor its namespace has the label '
        "cellgate.io/vc; VCs open to you: lab, other"
    )
