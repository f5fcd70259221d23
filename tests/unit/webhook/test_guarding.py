"""What was decided stays, and is told on the pod and its workload."""

from typing import Any

import pytest

from kube import marks
from kube.events import Event
from simulation.patch import json_patch
from tests.builders import PodBuilder, a_pod
from tests.unit.webhook.reviews import Webhook, a_review
from webhook.wire import Answer

RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules: [{priority: prod, then: oppo, note: experiments}]
"""
EXTENDER = "system:serviceaccount:cellgate-system:cellgate-extender"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1", "controller": True}


async def _create(webhook: Webhook, pod: PodBuilder, **who: Any) -> dict[str, Any]:
    answer = await webhook.pods.mutate(a_review(pod, **who))
    return json_patch(dict(pod), list(answer.patch))


async def test_a_lowered_class_is_told_on_the_pod_and_its_workload() -> None:
    webhook = Webhook({"rules": RULES})
    pod = a_pod().with_gpus(1).of_class("prod")._changed("metadata", ownerReferences=[OWNER])
    stored = await _create(webhook, pod)
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    message = "rule 1 lowers class prod to oppo: experiments"
    assert webhook.events.written == [
        Event(
            namespace="lab",
            api_version="v1",
            kind="Pod",
            name="bert-0",
            uid="uid-of-bert-0",
            reason="ClassLowered",
            message=message,
        ),
        Event(
            namespace="lab",
            api_version="batch/v1",
            kind="Job",
            name="train",
            uid="j1",
            reason="ClassLowered",
            message=message,
        ),
    ]


async def test_nothing_is_told_where_nothing_was_lowered() -> None:
    webhook = Webhook()
    stored = await _create(webhook, a_pod().with_gpus(1))
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    assert webhook.events.written == []


async def test_a_class_that_another_webhook_changed_is_refused() -> None:
    webhook = Webhook({"rules": RULES})
    stored = await _create(webhook, a_pod().with_gpus(1).of_class("prod"))
    stored["spec"]["priorityClassName"] = "prod"
    refused = await webhook.guard.validate(a_review(stored))
    assert refused.message == (
        'spec.priorityClassName: was decided to be "oppo", but another webhook changed it'
    )


async def _change(user: str, key: str, value: str | None, part: str = "annotations") -> Answer:
    webhook = Webhook()
    old = await _create(webhook, a_pod().with_gpus(1).in_vc("lab"))
    entries = {**old["metadata"][part], key: value}
    if value is None:
        del entries[key]
    new = {**old, "metadata": {**old["metadata"], part: entries}}
    return await webhook.guard.validate(a_review(new, old=old, user=user))


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("annotations", marks.SUBMITTER_ANNOTATION),
        ("annotations", marks.DECISION_ANNOTATION),
        ("annotations", marks.PLACEMENT_ANNOTATION),
        ("annotations", marks.HIVED_ISOLATION_ANNOTATION),
        ("annotations", marks.UNCHARGED_ANNOTATION),
        ("annotations", "cellgate.io/of-a-later-release"),
        ("annotations", marks.VOLCANO_ANNOTATION),
        ("labels", marks.VC_LABEL),
        ("labels", marks.GANG_LABEL),
        ("labels", marks.COSCHEDULING_LABEL),
    ],
)
async def test_our_marks_are_ours_to_change(part: str, key: str) -> None:
    refused = await _change("alice", key, "x", part)
    assert refused.message == f"metadata.{part}[{key}]: only Cellgate may change it"
    for ours in (EXTENDER, "root"):
        assert (await _change(ours, key, "x", part)).is_allowed


async def test_our_marks_cannot_be_taken_away_and_others_are_free() -> None:
    assert not (await _change("alice", marks.SUBMITTER_ANNOTATION, None)).is_allowed
    assert (await _change("alice", "example.org/note", "x")).is_allowed


async def test_a_pod_that_got_past_us_cannot_say_where_it_is_or_who_pays() -> None:
    """Its labels are still its owner's: nothing was decided by them."""
    webhook = Webhook()
    old = {"metadata": {"name": "x", "labels": {}, "annotations": {}}, "spec": {}}

    async def may(part: str, key: str) -> bool:
        new = {**old, "metadata": {"name": "x", part: {key: "x"}}}
        return (await webhook.guard.validate(a_review(new, old=old))).is_allowed

    assert not await may("annotations", marks.PLACEMENT_ANNOTATION)
    assert not await may("annotations", marks.SUBMITTER_ANNOTATION)
    assert not await may("annotations", marks.HIVED_BIND_INFO_ANNOTATION)
    assert await may("labels", marks.VC_LABEL)
    assert await may("annotations", "example.org/note")


async def test_the_gate_is_ours_to_lift() -> None:
    webhook = Webhook()
    old = await _create(webhook, a_pod().with_gpus(1))
    gated = {**old, "spec": {**old["spec"], "schedulingGates": [{"name": marks.QUEUED_GATE}]}}
    refused = await webhook.guard.validate(a_review(old, old=gated))
    assert refused.message == "spec.schedulingGates: only Cellgate may lift cellgate.io/queued"
    assert (await webhook.guard.validate(a_review(old, old=gated, user=EXTENDER))).is_allowed


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": 5, "spec": []},
        {"metadata": {"labels": 5, "annotations": {marks.DECISION_ANNOTATION: {}}}},
    ],
)
async def test_strange_objects_are_let_pass(obj: dict[str, Any]) -> None:
    webhook = Webhook()
    assert (await webhook.guard.validate(a_review(obj, old=obj))).is_allowed
    assert (await webhook.guard.validate(a_review({"kind": "Pod", **obj}))).is_allowed


async def test_nobody_ends_the_wait_for_quota_by_hand() -> None:
    webhook = Webhook()
    stored = await _create(webhook, a_pod().with_gpus(1))
    stored["metadata"]["annotations"][marks.UNCHARGED_ANNOTATION] = "true"
    changed = {**stored, "metadata": {**stored["metadata"]}}
    changed["metadata"]["annotations"] = {
        key: value
        for key, value in stored["metadata"]["annotations"].items()
        if key != marks.UNCHARGED_ANNOTATION
    }
    refused = await webhook.guard.validate(a_review(changed, old=stored))
    path = f"metadata.annotations[{marks.UNCHARGED_ANNOTATION}]"
    assert refused.message == f"{path}: only Cellgate may change it"
    assert (await webhook.guard.validate(a_review(changed, old=stored, user=EXTENDER))).is_allowed


async def test_nobody_leaves_a_gang_that_is_charged() -> None:
    webhook = Webhook()
    key = "scheduling.x-k8s.io/pod-group"
    stored = await _create(webhook, a_pod().with_gpus(1).labelled(key, "bert"))
    changed = {**stored, "metadata": {**stored["metadata"], "labels": {key: "other"}}}
    refused = await webhook.guard.validate(a_review(changed, old=stored))
    assert refused.message == f"metadata.labels[{key}]: only Cellgate may change it"


QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, limits: {leafCells: 0}, over: queue, users: [{name: alice}]}]
"""


async def test_a_pod_over_quota_is_not_let_in_without_its_gate() -> None:
    webhook = Webhook({"quotas": QUOTAS})
    stored = await _create(webhook, a_pod().with_gpus(1))
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    del stored["spec"]["schedulingGates"]
    refused = await webhook.guard.validate(a_review(stored))
    assert refused.message == (
        "spec.schedulingGates: has no cellgate.io/queued, though its quota is used up: "
        "another webhook lifted it"
    )
