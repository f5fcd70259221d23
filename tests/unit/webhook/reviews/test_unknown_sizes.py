"""PodGroups whose pods are not known: which class they get, and their gangs."""

import pytest

from simulation.objects.patch import json_patch
from tests.support.kube.pod_groups import a_group_member, a_pod_group
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {priority: test, current: "> 8", then: oppo, note: large gangs are opportunistic}
"""
QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, limits: {leafCells: 5}, over: queue, users: [{name: alice}]}]
"""


async def test_a_group_of_pods_of_unknown_size_gets_the_lowest_class_that_they_could_get() -> None:
    webhook = Webhook({"rules": RULES})
    group = a_pod_group(size=2).of_class("test")
    answer = await webhook.templates.mutate(a_review(group))
    stored = json_patch(group, list(answer.patch))
    assert stored["spec"]["priorityClassName"] == "oppo"
    assert stored["metadata"]["annotations"] == {"cellgate.io/requested-class": "test"}
    assert answer.warnings == (
        "cellgate: rule 1 lowers class test to oppo because current is 10, which is > 8: large "
        "gangs are opportunistic",
        'cellgate: the class of PodGroup "bert" depends on the leaf cells of its pods: class test '
        "with 1 each, class oppo with 5; it gets the lower one, and its gang the one that its pods "
        "are granted",
        "cellgate: to have a PodGroup decided for N leaf cells in each pod, create it with the "
        'annotation cellgate.io/leaf-cells: "N"',
    )


@pytest.mark.parametrize(("gpus", "granted"), [(2, "test"), (8, "oppo")])
@pytest.mark.parametrize("named", ["test", None])
async def test_its_gang_gets_the_class_that_is_granted_for_its_true_size(
    gpus: int, granted: str, named: str | None
) -> None:
    webhook = Webhook({"rules": RULES})
    group = a_pod_group(size=2).of_class("test")
    answer = await webhook.templates.mutate(a_review(group))
    webhook.groups.upsert(json_patch(group, list(answer.patch)))
    for name in ("a", "b"):
        pod = a_group_member(name, gpus=gpus)
        pod = pod.of_class(named) if named else pod
        admitted = await webhook.pods.mutate(a_review(pod))
        made = json_patch(dict(pod), list(admitted.patch))
        assert made["spec"]["priorityClassName"] == "oppo"
        annotations = made["metadata"]["annotations"]
        assert annotations["cellgate.io/class"] == "oppo"
        effective = annotations.get("cellgate.io/effective-class")
        assert effective == (None if granted == "oppo" else granted)
        assert annotations["cellgate.io/requested-class"] == "test"
    (live,) = await webhook.world.ledger.charges()
    assert (live.charge.class_name, live.charge.leaf_count) == (granted, 2 * gpus)
    assert live.charge.raised_from == (None if granted == "oppo" else "oppo")


async def test_it_does_so_too_while_the_ledger_is_away_or_over_quota() -> None:
    for quotas, is_away in ((QUOTAS, False), ("", True)):
        webhook = Webhook({"rules": RULES} | ({"quotas": quotas} if quotas else {}))
        group = a_pod_group(size=2).of_class("test")
        answer = await webhook.templates.mutate(a_review(group))
        webhook.groups.upsert(json_patch(group, list(answer.patch)))
        webhook.world.ledger.is_away = is_away
        for name in ("a", "b"):
            pod = a_group_member(name, gpus=4)
            admitted = await webhook.pods.mutate(a_review(pod))
            made = json_patch(dict(pod), list(admitted.patch))
            assert made["spec"]["priorityClassName"] == "oppo"
            annotations = made["metadata"]["annotations"]
            assert annotations["cellgate.io/effective-class"] == "test"
            assert ("cellgate.io/uncharged" in annotations) == bool(quotas)


@pytest.mark.parametrize(("each", "class_name"), [("4", "test"), ("5", "oppo")])
async def test_a_group_may_say_what_its_pods_ask_for(each: str, class_name: str) -> None:
    webhook = Webhook({"rules": RULES})
    group = a_pod_group(size=2).of_class("test").annotated("cellgate.io/leaf-cells", each)
    answer = await webhook.templates.mutate(a_review(group))
    stored = json_patch(group, list(answer.patch))
    assert stored["spec"]["priorityClassName"] == class_name
    webhook.groups.upsert(stored)
    for name in ("a", "b"):
        pod = a_group_member(name, gpus=int(each))
        admitted = await webhook.pods.mutate(a_review(pod))
        made = json_patch(dict(pod), list(admitted.patch))
        assert made["spec"]["priorityClassName"] == class_name
        assert "cellgate.io/effective-class" not in made["metadata"]["annotations"]


async def test_a_group_whose_pods_have_no_leaf_cells_is_left_alone() -> None:
    group = a_pod_group().of_class("prod").annotated("cellgate.io/leaf-cells", "0")
    answer = await Webhook({"rules": RULES}).templates.mutate(a_review(group))
    assert (answer.is_allowed, list(answer.patch)) == (True, [])


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "1234567"])
async def test_a_group_says_it_in_a_whole_number(text: str) -> None:
    group = a_pod_group().of_class("prod").annotated("cellgate.io/leaf-cells", text)
    answer = await Webhook().templates.mutate(a_review(group))
    assert answer.message == (
        f'metadata.annotations[cellgate.io/leaf-cells]: is "{text}"; write the leaf cells of each '
        "pod as a whole number"
    )


async def test_no_group_claims_that_its_author_asked_for_a_higher_class() -> None:
    group = a_pod_group().of_class("oppo").annotated("cellgate.io/requested-class", "prod")
    answer = await Webhook().templates.mutate(a_review(group))
    assert json_patch(group, list(answer.patch))["metadata"]["annotations"] == {}
