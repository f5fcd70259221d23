"""Alternatives of new pods: each must be as admissible as what the pod asks for."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from kube.admission.elastic_jobs import read_elastic
from policy.submission import VcName
from simulation.objects.patch import json_patch
from tests.support.kube.pods import PodBuilder, a_new_pod, a_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.state.charges import TERM
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

_PATH = "metadata.annotations[cellgate.io/alternatives]"
_IDENTITY = """
apiVersion: cellgate.io/v1
kind: Identity
vcs: {closed: {users: [bob]}, shared: {users: [alice, bob]}}
"""
_RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {vc: "^slow$", then: oppo}
- {vc: "^off$", then: fail, note: "this VC takes no gangs"}
"""
_QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, limits: {byLeafType: {V100: 8}}, over: queue, users: [{name: alice}]}]
"""
_POLICIES = {"identity": _IDENTITY, "rules": _RULES, "quotas": _QUOTAS}


def _a_member(alternatives: str, name: str = "bert-0") -> PodBuilder:
    pod = a_pod(name).with_gpus(1).in_gang("bert", size=4)
    return pod.annotated("cellgate.io/alternatives", alternatives)


async def _refusal(pod: PodBuilder) -> str:
    answer = await Webhook(_POLICIES).pods.mutate(a_review(pod, user="alice"))
    assert not answer.is_allowed
    return answer.message


async def test_admissible_alternatives_stay_on_the_pod_and_a_stated_one_is_removed() -> None:
    webhook = Webhook(_POLICIES)
    pod = _a_member("[{vc: shared}, {leafType: A100}, {minMembers: 2}]")
    pod = pod.annotated("cellgate.io/alternative", "1 of 3 (VC shared)")
    answer = await webhook.pods.mutate(a_review(pod, user="alice"))

    assert answer.is_allowed
    annotations = json_patch(dict(pod), list(answer.patch))["metadata"]["annotations"]
    assert annotations["cellgate.io/alternatives"].startswith("[{vc: shared}")
    assert "cellgate.io/alternative" not in annotations
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.vc, live.charge.leaf_type) == ("default", None)


@pytest.mark.parametrize(
    ("alternatives", "message"),
    [
        ("[{vc: closed}]", f'{_PATH}[0].vc: VC "closed" is not open to "alice"'),
        ("[{gpu: V100}]", f"{_PATH}[0].gpu: is not known"),
        ("[{minMembers: 4}]", f"{_PATH}[0].minMembers: must be less than cellgate.io/gang-size"),
        (
            "[{vc: shared}, {vc: slow}]",
            f'{_PATH}[1]: rules give class "oppo" instead of "test" to VC slow',
        ),
        ("[{vc: 'off'}]", f"{_PATH}[0]: VC off would be refused"),
        (
            "[{leafType: V100}]",
            f"{_PATH}[0]: group vision has a limit on leaf cells of type V100, and a gang is",
        ),
    ],
    ids=["closed VC", "unknown key", "too many members", "lower class", "refused", "limited type"],
)
async def test_alternative_that_is_not_admissible_is_refused(
    alternatives: str, message: str
) -> None:
    assert (await _refusal(_a_member(alternatives))).startswith(message)


async def test_minimum_must_be_below_that_of_the_gang() -> None:
    pod = a_pod("bert-0").with_gpus(1).in_gang("bert", size=4, min_size=2)
    message = await _refusal(pod.annotated("cellgate.io/alternatives", "[{minMembers: 2}]"))
    assert "must be less than cellgate.io/gang-min, which is 2" in message


async def test_gang_of_another_form_has_no_alternatives() -> None:
    pod = a_pod("bert-0").with_gpus(1).labelled("scheduling.x-k8s.io/pod-group", "bert")
    message = await _refusal(pod.annotated("cellgate.io/alternatives", "[{vc: shared}]"))
    assert message.startswith(f"{_PATH}: only single pods and gangs by the labels of Cellgate")


async def test_refused_alternative_charges_nothing() -> None:
    webhook = Webhook(_POLICIES)
    answer = await webhook.pods.mutate(a_review(_a_member("[{vc: slow}]"), user="alice"))

    assert not answer.is_allowed
    assert await webhook.world.ledger.charges() == ()


async def test_member_joins_a_gang_whose_charge_follows_an_alternative() -> None:
    webhook = Webhook(_POLICIES)
    await webhook.pods.mutate(a_review(_a_member("[{vc: shared}]"), user="alice"))
    (live,) = await webhook.world.ledger.charges()
    await webhook.world.ledger.release([live.charge.gang], term=TERM)
    await webhook.world.ledger.charge(replace(live.charge, vc=VcName("shared")))

    joins = await webhook.pods.mutate(a_review(_a_member("[{vc: shared}]", "bert-1"), user="alice"))
    differs = await webhook.pods.mutate(a_review(_a_member("[{vc: b}]", "bert-2"), user="alice"))

    assert joins.is_allowed
    assert "VC default instead of shared" in differs.message


def _an_elastic_job(sizes: str, **spec: Any) -> dict[str, Any]:
    pod = a_new_pod("unused").with_gpus(1).in_gang("bert", size=4)
    counts = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "suspend": True}
    job = dict(a_workload("Job", "bert", template=a_template(pod), **{**counts, **spec}))
    job["metadata"]["annotations"] = {"cellgate.io/alternatives": sizes}
    return job


async def test_elastic_job_is_marked_and_keeps_its_mark_when_the_leader_resumes_it() -> None:
    webhook, job = Webhook(_POLICIES), _an_elastic_job("[{members: 2}]")
    answer = await webhook.templates.mutate(a_review(job, user="alice"))
    stored = json_patch(deepcopy(job), list(answer.patch))
    assert stored["metadata"]["labels"]["cellgate.io/elastic"] == "waiting"
    elastic = read_elastic(stored)
    assert elastic is not None

    resumed = deepcopy(stored)
    resumed["spec"] |= {"suspend": False, "parallelism": 2, "completions": 2}
    resumed["spec"]["template"]["metadata"]["labels"]["cellgate.io/gang-size"] = "2"
    extender = "system:serviceaccount:cellgate-system:cellgate-extender"
    again = await webhook.templates.mutate(a_review(resumed, old=stored, user=extender))

    assert again.is_allowed
    kept = json_patch(deepcopy(resumed), list(again.patch))["spec"]["template"]["metadata"]
    assert kept["annotations"]["cellgate.io/submitter"] == "alice"


async def test_job_that_cannot_be_resized_is_refused_at_its_creation() -> None:
    job = _an_elastic_job("[{members: 2}]", suspend=False)
    answer = await Webhook(_POLICIES).templates.mutate(a_review(job, user="alice"))

    assert answer.message == "spec.suspend: must be true: a Job that has pods is not resized"


async def test_every_member_is_checked_also_if_a_trusted_controller_creates_it() -> None:
    webhook = Webhook(_POLICIES)
    controller = "system:serviceaccount:kube-system:job-controller"
    for index, is_allowed in enumerate((True, False)):
        listed = "[{vc: shared}]" if is_allowed else "[{vc: slow}]"
        member = _a_member(listed, f"bert-{index}").submitted_by("alice")
        answer = await webhook.pods.mutate(a_review(member, user=controller))
        assert answer.is_allowed is is_allowed


async def test_what_the_gang_itself_holds_does_not_count_against_its_later_members() -> None:
    rules = _RULES + '- {vc: "^busy$", occupied: "> 4", then: oppo}\n'
    webhook = Webhook({**_POLICIES, "rules": rules})
    for index in range(4):
        member = _a_member("[{vc: busy}]", f"bert-{index}")
        assert (await webhook.pods.mutate(a_review(member, user="alice"))).is_allowed
