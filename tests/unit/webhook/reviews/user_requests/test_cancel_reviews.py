"""The log says which user cancelled which gang, and why; every deletion is allowed."""

from typing import Any

import pytest

from kube import marks
from state.log.records import DecisionRecord
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- {name: vision, limits: {leafCells: 80}, admins: [carol], users: [{name: alice}, {name: bob}]}
"""
IDENTITY = """
apiVersion: cellgate.io/v1
kind: Identity
trustedControllers: ["system:serviceaccount:kubeflow:training-operator"]
"""


def _pod(name: str) -> PodBuilder:
    pod = a_pod(name).with_gpus(1).submitted_by("alice").annotated(marks.DECISION_ANNOTATION, "d")
    return pod.labelled(marks.GROUP_LABEL, "vision")


def _job(name: str = "train", gang: str | None = None, **status: Any) -> dict[str, Any]:
    labels = {marks.GROUP_LABEL: "vision", **({marks.GANG_LABEL: gang} if gang else {})}
    metadata = {"annotations": {marks.SUBMITTER_ANNOTATION: "alice"}, "labels": labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lab", "uid": "u1"},
        "spec": {"template": {"metadata": metadata, "spec": {"containers": []}}},
        "status": status,
    }


async def _rows(
    *deleted: dict[str, Any], user: str = "alice", **fields: Any
) -> list[DecisionRecord]:
    webhook = Webhook({"quotas": QUOTAS, "identity": IDENTITY})
    for obj in deleted:
        given = {"options": {"propagationPolicy": "Background"}, **fields}
        review = a_review(None, old=obj, user=user).model_copy(update=given)
        assert (await webhook.cancels.validate(review)).is_allowed
    await webhook.log.flush()
    return [row for row in webhook.decisions.records if row.kind == "cancel"]


@pytest.mark.parametrize(
    ("user", "who"),
    [
        ("alice", "its owner alice"),
        ("carol", "the group's admin carol"),
        ("root", "the policy admin root"),
        ("eve", "user eve"),
    ],
)
async def test_a_row_says_who_deleted_a_workload_and_why(user: str, who: str) -> None:
    job = _job(gang="bert")
    job["metadata"]["annotations"] = {marks.CANCEL_ANNOTATION: "wrong data"}
    (row,) = await _rows(job, user=user)
    assert (row.subject, row.outcome) == ("lab/bert", "cancelled")
    assert row.reason == f"{who} cancelled it: wrong data"
    assert (row.details["workload"], row.details["workloadUid"]) == ("Job/train", "u1")
    assert (row.details["user"], row.details["why"]) == (user, "wrong data")


async def test_a_workload_without_a_gang_label_is_named_itself() -> None:
    (row,) = await _rows(_job())
    assert (row.subject, row.reason) == ("lab/train", "its owner alice cancelled it")


async def test_the_pods_of_a_gang_have_one_row() -> None:
    pods = [dict(_pod(f"m-{index}").in_gang("bert", size=9)) for index in range(9)]
    (row,) = await _rows(*pods)
    assert row.subject == "lab/bert"


async def test_what_has_ended_or_is_no_cancellation_has_no_row() -> None:
    done = _job(conditions=[{"type": "Complete", "status": "True"}])
    over = dict(_pod("over")._changed("status", phase="Succeeded"))
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "r",
        "uid": "u",
        "controller": True,
    }
    owned = dict(_pod("owned")._changed("metadata", ownerReferences=[owner]))
    assert await _rows(done, over, owned, {"kind": "Job", "metadata": {}}, {"kind": "Pod"}) == []
    ending = dict(_pod("ending")._changed("metadata", deletionTimestamp="2026-11-18T12:00:00Z"))
    assert await _rows(ending) == []
    assert await _rows(_job(), dry_run=True) == []
    assert await _rows(_job(), options={"propagationPolicy": "Orphan"}) == []
    assert await _rows(_job(), options={"orphanDependents": True}) == []
    assert await _rows(_job(), options={}) == [], "the API server leaves the pods of a Job"
    assert await _rows(_job(), user="system:serviceaccount:kubeflow:training-operator") == []


async def test_the_owner_may_write_the_reason_on_a_pod() -> None:
    webhook, pod = Webhook({"quotas": QUOTAS}), dict(_pod("a"))
    annotations = {**pod["metadata"]["annotations"], marks.CANCEL_ANNOTATION: "wrong data"}
    changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    assert (await webhook.guard.validate(a_review(changed, old=pod, user="carol"))).is_allowed
    answer = await webhook.guard.validate(a_review(changed, old=pod, user="bob"))
    assert answer.message == (
        "metadata.annotations[cellgate.io/cancel]: only the owner of the gang, an admin of its "
        "group or a policy admin may change it"
    )
