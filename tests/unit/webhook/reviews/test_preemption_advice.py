"""Jobs that preemption would make fail: their owners are told at apply what to add."""

from typing import Any

import pytest

from kube.follow.policies import PolicySink
from policy.submission import ClassName
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.reviews.preemption_advice import PreemptionAdvice

RULE = "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
IGNORES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
LOWERED = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {user: "^alice$", then: oppo, note: idle cells only}
"""


@pytest.fixture
def policies() -> PolicySink:
    return Webhook().sink


def advice(
    policies: PolicySink, job: dict[str, Any], *, name: str = "oppo", is_gentle: bool = False
) -> list[str]:
    return [*PreemptionAdvice(policies, is_gentle=is_gentle).of(job, ClassName(name)).warnings]


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_an_opportunistic_job_is_told_what_to_add(policies: PolicySink, kind: str) -> None:
    (line,) = advice(policies, a_workload(kind))
    assert line == (
        "cellgate: a Job in class oppo may be preempted, and then counts each pod as a failure: "
        f"add to its podFailurePolicy.rules {RULE}"
    )


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_a_job_that_ignores_disruptions_needs_no_advice(policies: PolicySink, kind: str) -> None:
    assert advice(policies, a_workload(kind, podFailurePolicy=IGNORES)) == []


@pytest.mark.parametrize(
    "policy",
    [
        {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        {"rules": [{"action": "Ignore", "onExitCodes": {}}]},
        {"rules": "none"},
    ],
)
def test_other_policies_do_not_help(policies: PolicySink, policy: dict[str, Any]) -> None:
    assert advice(policies, a_workload("Job", podFailurePolicy=policy))


@pytest.mark.parametrize(
    ("kind", "name"), [("Job", "prod"), ("Job", "none"), ("Deployment", "oppo")]
)
def test_what_is_not_an_opportunistic_job_gets_no_advice(
    policies: PolicySink, kind: str, name: str
) -> None:
    assert advice(policies, a_workload(kind), name=name) == []


def test_a_job_that_is_suspended_instead_needs_no_advice(policies: PolicySink) -> None:
    assert advice(policies, a_workload("Job"), is_gentle=True) == []


def test_a_job_that_cannot_be_suspended_is_told_why(policies: PolicySink) -> None:
    job = a_workload("Job", managedBy="example.com/other")
    (line,) = advice(policies, job, is_gentle=True)
    assert "(Cellgate cannot suspend it: its managedBy is example.com/other)" in line
    assert line.endswith(RULE)


async def test_the_class_that_the_pods_get_counts() -> None:
    webhook = Webhook({"rules": LOWERED})
    job = a_workload("Job", template=a_template())
    answer = await webhook.templates.mutate(a_review(job))
    assert [line for line in answer.warnings if "may be preempted" in line]


SHAPING = """
apiVersion: cellgate.io/v1
kind: Shaping
shapes:
- {name: patient, user: "^alice$", ignoresDisruptions: true}
"""


def a_job(kind: str = "Job", *, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    template = a_template(a_new_pod("bert").with_gpus(1).of_class("oppo"))
    template["spec"]["restartPolicy"] = restart
    return a_workload(kind, template=template, **spec)


@pytest.mark.parametrize(
    ("kind", "path"),
    [("Job", "/spec/podFailurePolicy"), ("CronJob", "/spec/jobTemplate/spec/podFailurePolicy")],
)
async def test_a_shape_gives_an_opportunistic_job_the_policy(kind: str, path: str) -> None:
    webhook = Webhook({"shaping": SHAPING})
    answer = await webhook.templates.mutate(a_review(a_job(kind)))
    assert {"op": "add", "path": path, "value": IGNORES} in answer.patch
    (line,) = [line for line in answer.warnings if "preempted" in line]
    assert line == (
        "cellgate: a Job in class oppo may be preempted: shape patient adds to its "
        f"podFailurePolicy.rules {RULE}; it counts no failures then, but still waits before it "
        "creates pods again"
    )


async def test_the_default_that_is_not_allowed_beside_the_policy_is_replaced() -> None:
    webhook = Webhook({"shaping": SHAPING})
    job = a_job(podReplacementPolicy="TerminatingOrFailed")
    answer = await webhook.templates.mutate(a_review(job))
    replaced = {"op": "add", "path": "/spec/podReplacementPolicy", "value": "Failed"}
    assert replaced in answer.patch


@pytest.mark.parametrize(
    "job",
    [
        a_job(restart="OnFailure"),
        a_job(podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {}}]}),
        a_workload("Job", template=a_template(a_new_pod("bert").with_gpus(1).of_class("test"))),
        a_workload("Deployment", template=a_job()["spec"]["template"]),
    ],
    ids=["it may not have one", "it has one", "guaranteed", "no Job"],
)
async def test_other_workloads_stay_as_they_are(job: dict[str, Any]) -> None:
    webhook = Webhook({"shaping": SHAPING})
    answer = await webhook.templates.mutate(a_review(job))
    assert not [step for step in answer.patch if "podFailurePolicy" in step["path"]]


async def test_a_job_that_exists_does_not_get_the_policy() -> None:
    webhook = Webhook({"shaping": SHAPING})
    before = a_job()
    job = {**a_job(), "metadata": {**before["metadata"], "labels": {"a": "b"}}}
    job["spec"]["template"]["metadata"]["labels"] = {"a": "b"}
    answer = await webhook.templates.mutate(a_review(job, old=before))
    assert not [step for step in answer.patch if "podFailurePolicy" in step["path"]]
