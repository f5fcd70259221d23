"""A decided pod stays as it is, and Events on it and its workload say what was decided."""

from collections.abc import Callable
from typing import Any

import pytest

from kube import marks
from kube.api.events import Event
from simulation.objects.patch import json_patch
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.wire import ReviewResponse

RULES = """
apiVersion: cellgate.io/v1
kind: Rules
rules: [{priority: prod, then: oppo, note: experiments}]
"""
GROUP = {"priorityClassName": "test", "schedulingPolicy": {"gang": {"minCount": 2}}}
HINT = (
    "another webhook changed the pod after Cellgate had decided; "
    'give its configuration a name that sorts before "cellgate"'
)
EXTENDER = "system:serviceaccount:cellgate-system:cellgate-extender"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1", "controller": True}


async def _create(webhook: Webhook, pod: PodBuilder, **who: Any) -> dict[str, Any]:
    answer = await webhook.pods.mutate(a_review(pod, **who))
    return json_patch(dict(pod), list(answer.patch))


async def test_a_lowered_class_leads_to_events_on_the_pod_and_its_workload() -> None:
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


async def test_later_members_lead_to_no_second_event_on_their_workload() -> None:
    webhook = Webhook({"rules": RULES})
    for index in range(3):
        pod = a_pod(f"bert-{index}").with_gpus(1).of_class("prod").in_gang("bert", size=3)
        stored = await _create(webhook, pod._changed("metadata", ownerReferences=[OWNER]))
        assert (await webhook.guard.validate(a_review(stored))).is_allowed
    told = {(event.kind, event.name, event.message) for event in webhook.events.written}
    message = "rule 1 lowers class prod to oppo: experiments"
    pods = {("Pod", f"bert-{index}", message) for index in range(3)}
    assert told == {*pods, ("Job", "train", message)}


async def test_a_decision_of_another_replica_leads_to_events_too() -> None:
    pod = a_pod().with_gpus(1).of_class("prod")._changed("metadata", ownerReferences=[OWNER])
    stored = await _create(Webhook({"rules": RULES}), pod)
    decision = stored["metadata"]["annotations"]["cellgate.io/decision"]
    other = Webhook({"rules": RULES})
    assert (await other.guard.validate(a_review(stored))).is_allowed
    told = [(event.kind, event.reason, event.message) for event in other.events.written]
    message = f"class prod is lowered to oppo by decision {decision}"
    assert told == [("Pod", "ClassLowered", message), ("Job", "ClassLowered", message)]


async def test_a_gang_that_another_replica_queued_leads_to_events_too() -> None:
    limits = "[{name: vision, limits: {leafCells: 0}, over: queue, users: [{name: alice}]}]"
    quotas = f"apiVersion: cellgate.io/v1\nkind: Quotas\ngroups: {limits}"
    stored = await _create(Webhook({"quotas": quotas}), a_pod().with_gpus(1))
    other = Webhook({"quotas": quotas})
    assert (await other.guard.validate(a_review(stored))).is_allowed
    decision = stored["metadata"]["annotations"]["cellgate.io/decision"]
    (event,) = other.events.written
    message = f"waits for quota by decision {decision}"
    assert (event.reason, event.message) == ("OverQuota", message)


async def test_no_events_where_nothing_was_lowered() -> None:
    webhook = Webhook()
    stored = await _create(webhook, a_pod().with_gpus(1))
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    assert webhook.events.written == []


async def test_the_note_of_a_rule_that_keeps_the_class_is_no_event_about_a_lowered_one() -> None:
    rules = RULES.replace("oppo", "retain")
    webhook = Webhook({"rules": rules})
    stored = await _create(webhook, a_pod().with_gpus(1).of_class("prod"))
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    assert [(one.reason, one.message) for one in webhook.events.written] == [
        ("Admitted", "rule 1 keeps class prod: experiments")
    ]


async def test_a_class_that_another_webhook_changed_is_refused() -> None:
    webhook = Webhook({"rules": RULES})
    stored = await _create(webhook, a_pod().with_gpus(1).of_class("prod"))
    stored["spec"]["priorityClassName"] = "prod"
    refused = await webhook.guard.validate(a_review(stored))
    assert refused.message == f'spec.priorityClassName: was "oppo" and is "prod": {HINT}'


ASKED = (
    "1 leaf cells, main=1 nvidia.com/gpu, cellgate.io/gang=bert, cellgate.io/gang-size=2, "
    "cellgate.io/leaf-type=A100, cellgate.io/vc=lab"
)


@pytest.mark.parametrize(
    ("changed", "was", "now"),
    [
        (
            PodBuilder.with_gpus,
            "1 leaf cells, main=1 nvidia.com/gpu",
            "8 leaf cells, main=8 nvidia.com/gpu",
        ),
        (PodBuilder.in_vc, "cellgate.io/vc=lab", "cellgate.io/vc=8"),
        (PodBuilder.wanting, "cellgate.io/leaf-type=A100", "cellgate.io/leaf-type=8"),
        (
            lambda pod, size: pod.in_gang("bert", size=size),
            "cellgate.io/gang-size=2",
            "cellgate.io/gang-size=8",
        ),
    ],
    ids=["leaf cells", "VC", "leaf type", "gang"],
)
async def test_what_another_webhook_made_of_a_pod_is_refused(
    changed: Callable[[PodBuilder, object], PodBuilder], was: str, now: str
) -> None:
    webhook = Webhook()
    pod = a_pod().with_gpus(1).in_vc("lab").wanting("A100").in_gang("bert", size=2)
    stored = await _create(webhook, pod)
    assert stored["metadata"]["annotations"][marks.REQUEST_ANNOTATION] == ASKED
    assert (await webhook.guard.validate(a_review(stored))).is_allowed
    later = changed(PodBuilder(stored), "8")
    refused = await webhook.guard.validate(a_review(dict(later)))
    assert refused.message == f'spec: was "{was}" and is "{now}": {HINT}'


async def test_a_pod_that_asks_for_leaf_cells_after_us_is_refused() -> None:
    """Also one whose author wrote a decision on it: no other review would remove that."""
    webhook = Webhook()
    forged = a_pod().annotated(marks.DECISION_ANNOTATION, "1").annotated("example.org/note", "x")
    stored = await _create(webhook, forged)
    assert stored["metadata"]["annotations"] == {"example.org/note": "x"}
    refused = await webhook.guard.validate(a_review(dict(PodBuilder(stored).with_gpus(1))))
    path = f"metadata.annotations[{marks.DECISION_ANNOTATION}]"
    assert refused.message == f"{path}: is missing from a pod that asks for leaf cells: {HINT}"


@pytest.mark.parametrize(
    "pod",
    [
        a_pod().with_gpus(2).in_native_gang("bert"),
        a_pod().with_gpus(2).labelled(marks.COSCHEDULING_LABEL, "bert"),
        a_pod().for_hived().with_gpus(2).with_hived_spec("virtualCluster: a\nleafCellNumber: 2"),
        a_pod("").with_gpus(1),
        a_pod().with_gpus(0),
    ],
    ids=["native", "coscheduling", "hived", "without a name", "nothing"],
)
async def test_what_we_decided_about_is_stored(pod: PodBuilder) -> None:
    webhook = Webhook()
    webhook.groups.replace([{"metadata": {"name": "bert", "namespace": "lab"}, "spec": GROUP}])
    stored = await _create(webhook, pod)
    assert (await webhook.guard.validate(a_review(stored))).is_allowed


async def _change(
    user: str, key: str, value: str | None, part: str = "annotations"
) -> ReviewResponse:
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
    ],
)
async def test_our_marks_are_ours_to_change(part: str, key: str) -> None:
    refused = await _change("alice", key, "x", part)
    assert refused.message == f"metadata.{part}[{key}]: only Cellgate may change it"
    for ours in (EXTENDER, "root"):
        assert (await _change(ours, key, "x", part)).is_allowed


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("annotations", marks.ALTERNATIVES_ANNOTATION),
        ("annotations", marks.START_BY_ANNOTATION),
        ("annotations", marks.VOLCANO_ANNOTATION),
        ("labels", marks.VC_LABEL),
        ("labels", marks.GANG_LABEL),
        ("labels", marks.COSCHEDULING_LABEL),
    ],
)
async def test_what_a_user_asked_for_stays_and_the_refusal_says_so(part: str, key: str) -> None:
    refused = await _change("alice", key, "x", part)
    assert refused.message == (
        f"metadata.{part}[{key}]: cannot be changed after the pod was created; "
        "create a new pod instead"
    )
    for ours in (EXTENDER, "root"):
        assert (await _change(ours, key, "x", part)).is_allowed
    neighbour = "system:serviceaccount:cellgate-system:default"
    assert not (await _change(neighbour, key, "x", part)).is_allowed


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
async def test_strange_objects_do_not_disturb_us(obj: dict[str, Any]) -> None:
    webhook = Webhook()
    assert (await webhook.guard.validate(a_review(obj, old=obj))).is_allowed
    answer = await webhook.guard.validate(a_review({"kind": "Pod", **obj}))
    assert answer.is_allowed or "must be a mapping" in answer.message


async def test_no_user_ends_the_wait_for_quota() -> None:
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


async def test_no_pod_leaves_a_gang_that_is_charged() -> None:
    webhook = Webhook()
    key = "scheduling.x-k8s.io/pod-group"
    stored = await _create(webhook, a_pod().with_gpus(1).labelled(key, "bert"))
    changed = {**stored, "metadata": {**stored["metadata"], "labels": {key: "other"}}}
    refused = await webhook.guard.validate(a_review(changed, old=stored))
    assert refused.message.startswith(f"metadata.labels[{key}]: cannot be changed after the pod")


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
        f"spec.schedulingGates: must have cellgate.io/queued while the pod waits for quota: {HINT}"
    )
