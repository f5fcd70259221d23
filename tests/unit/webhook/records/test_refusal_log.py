"""Every refusal is a row of the decision log, once."""

from policy.submission import GangKey
from state.log.records import DecisionRecord
from tests.support.kube.pods import a_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.policy.documents import HEAD
from tests.support.state.charges import TERM
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

IDENTITY = f"{HEAD}Identity\nvcs: {{lab: {{users: [carol]}}}}\n"
RULES = f"{HEAD}Rules\nrules: [{{user: mallory, then: fail, note: never}}]\n"


async def rows(webhook: Webhook) -> list[DecisionRecord]:
    await webhook.log.flush()
    return list(webhook.decisions.records)


async def test_a_vc_that_is_not_open_is_recorded_with_the_gang_and_the_user() -> None:
    webhook = Webhook({"identity": IDENTITY})
    pod = a_pod("a").with_gpus(1).in_vc("lab").in_gang("bert", size=2)
    refused = await webhook.pods.mutate(a_review(pod))
    (row,) = await rows(webhook)
    assert (row.subject, row.outcome, row.reason) == ("lab/bert", "refused", refused.message)
    assert row.details == {
        "user": "alice",
        "operation": "CREATE",
        "kind": "Pod",
        "object": "lab/a",
    }


async def test_a_full_gang_is_recorded() -> None:
    webhook = Webhook()
    pods = [a_pod(name).with_gpus(1).in_gang("bert", size=1) for name in ("a", "b")]
    await webhook.pods.mutate(a_review(pods[0]))
    await webhook.world.ledger.confirm([GangKey("lab", "bert")], term=TERM)
    webhook.stored.append(pods[0])
    assert not (await webhook.pods.mutate(a_review(pods[1]))).is_allowed
    told = [(row.subject, row.outcome) for row in await rows(webhook)]
    assert told == [("lab/bert", "admitted"), ("lab/bert", "refused")]


async def test_a_decision_is_recorded_once() -> None:
    webhook = Webhook({"rules": RULES})
    pod = a_pod("a").with_gpus(1)
    assert not (await webhook.pods.mutate(a_review(pod, user="mallory"))).is_allowed
    (row,) = await rows(webhook)
    assert (row.outcome, row.details["class"]) == ("refused", "test")


async def test_a_refused_template_is_recorded_under_its_name() -> None:
    webhook = Webhook({"rules": RULES})
    job = a_workload("Job", "train", template=a_template())
    assert not (await webhook.templates.mutate(a_review(job, user="mallory"))).is_allowed
    (row,) = await rows(webhook)
    assert (row.subject, row.details["kind"]) == ("lab/train", "Job")


async def test_a_refusal_of_the_guard_is_recorded() -> None:
    webhook = Webhook()
    assert not (await webhook.guard.validate(a_review(a_pod("a").with_gpus(1)))).is_allowed
    (row,) = await rows(webhook)
    assert (row.subject, row.outcome) == ("lab/a", "refused")


async def test_a_pod_that_cannot_be_read_is_recorded_under_its_gangs_label() -> None:
    webhook = Webhook()
    pod = a_pod("a").with_gpus("many").in_gang("bert", size=2)
    assert not (await webhook.pods.mutate(a_review(pod))).is_allowed
    (row,) = await rows(webhook)
    assert row.subject == "lab/bert"


async def test_retries_of_a_controller_are_one_row_and_dry_runs_are_none() -> None:
    webhook = Webhook({"identity": IDENTITY})
    pod = a_pod("a").with_gpus(1).in_vc("lab").unnamed("a-")
    for _ in range(5):
        await webhook.pods.mutate(a_review(pod))
    await webhook.pods.mutate(a_review(a_pod("dry").with_gpus(1).in_vc("lab"), dry_run=True))
    assert len(await rows(webhook)) == 1


async def test_later_members_follow_the_decision_and_are_not_recorded_again() -> None:
    webhook = Webhook()
    for name in ("a", "b", "c"):
        await webhook.pods.mutate(a_review(a_pod(name).with_gpus(1).in_gang("bert", size=3)))
    (row,) = await rows(webhook)
    assert (row.subject, row.outcome, row.details["leafCount"]) == ("lab/bert", "admitted", 3)
