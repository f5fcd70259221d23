"""Members of one gang that request more CPU or memory than the first one: limits hold for all."""

import pytest

from policy.quotas.limits import Scope
from policy.submission import GroupName
from tests.support.kube.pod_groups import a_pod_group
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.policy.documents import HEAD
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

QUOTAS = f"""{HEAD}Quotas
groups: [{{name: vision, limits: {{cpu: 20}}, over: fail, users: [{{name: alice}}]}}]
"""
AWAY = " Quota database unavailable; last known usage applied."
VISION = Scope(None, GroupName("vision"))


def member(index: int, *, cpu: str, gpus: int = 1, form: str = "labels") -> PodBuilder:
    pod = a_pod(f"bert-{index}").with_container({"nvidia.com/gpu": str(gpus), "cpu": cpu})
    pod = pod.of_class("test")
    return pod.in_gang("bert", size=4) if form == "labels" else pod.in_native_gang("bert")


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize("form", ["labels", "native"])
async def test_later_members_that_request_more_cpu_stay_within_the_limit(
    form: str, is_away: bool
) -> None:
    webhook = Webhook({"quotas": QUOTAS})
    webhook.groups.upsert(a_pod_group(size=4).of_class("test"))
    answers = []
    for index, cpu in enumerate(("1m", "9", "9", "9")):
        if index == 1:
            webhook.world.ledger.is_away = is_away
        review = a_review(member(index, cpu=cpu, form=form))
        answers.append(await webhook.pods.mutate(review))
    assert [answer.is_allowed for answer in answers] == [True, True, True, False]
    assert answers[-1].message.removesuffix(AWAY) == (
        "alice asked for 4 leaf cells in class test: refused by the quotas of group vision. Group "
        "vision holds 18.002 CPUs and the gang asks for 8.999 CPUs more; the limit is 20 CPUs. A "
        "gang with 1.998 CPUs would fit."
    )
    if not is_away:
        assert (await webhook.world.ledger.usage(VISION)).cpu_millis == 18_002


async def test_a_member_with_more_leaf_cells_and_cpu_is_charged_for_both() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    for index, (gpus, cpu) in enumerate(((1, "1"), (3, "5"), (1, "1"))):
        assert (await webhook.pods.mutate(a_review(member(index, cpu=cpu, gpus=gpus)))).is_allowed
    usage = await webhook.world.ledger.usage(VISION)
    assert (usage.leaf_cells, usage.cpu_millis) == (6, 8000)


async def test_members_that_request_less_or_as_much_are_charged_for_nothing_more() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    for index, cpu in enumerate(("3", "3", "1", "3")):
        assert (await webhook.pods.mutate(a_review(member(index, cpu=cpu)))).is_allowed
    assert (await webhook.world.ledger.usage(VISION)).cpu_millis == 12_000


async def test_without_a_limit_of_cpu_a_member_costs_no_further_call() -> None:
    webhook = Webhook({"quotas": QUOTAS.replace("cpu: 20", "leafCells: 20")})
    for index, cpu in enumerate(("1", "9")):
        assert (await webhook.pods.mutate(a_review(member(index, cpu=cpu)))).is_allowed
    assert (await webhook.world.ledger.usage(VISION)).cpu_millis == 4000
