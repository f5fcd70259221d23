"""Which users hold and release a gang, and what the pod states then."""

from typing import Any

import pytest

from kube import marks
from simulation.objects.patch import json_patch
from tests.support.kube.pods import a_pod
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- {name: vision, limits: {leafCells: 80}, admins: [carol], users: [{name: alice}, {name: bob}]}
"""


async def _created(webhook: Webhook, hold: str | None = None) -> dict[str, Any]:
    """A pod of alice, as it is stored."""
    pod = a_pod().with_gpus(1)
    if hold is not None:
        pod = pod.annotated(marks.HOLD_ANNOTATION, hold)
    answer = await webhook.pods.mutate(a_review(pod, groups=["vision"]))
    assert answer.is_allowed, answer.message
    return json_patch(dict(pod), list(answer.patch))


def _with(pod: dict[str, Any], hold: str | None) -> dict[str, Any]:
    annotations = {**pod["metadata"]["annotations"], marks.HOLD_ANNOTATION: hold}
    kept = {key: text for key, text in annotations.items() if text is not None}
    return {**pod, "metadata": {**pod["metadata"], "annotations": kept}}


async def _change(
    webhook: Webhook, pod: dict[str, Any], hold: str | None, *, user: str
) -> dict[str, Any] | str:
    """The pod after both reviews of the change, or why it is refused."""
    changed = _with(pod, hold)
    answer = await webhook.holds.mutate(a_review(changed, old=pod, user=user))
    if not answer.is_allowed:
        return answer.message
    changed = json_patch(changed, list(answer.patch))
    checked = await webhook.guard.validate(a_review(changed, old=pod, user=user))
    return changed if checked.is_allowed else checked.message


def _held_by(pod: dict[str, Any] | str) -> list[str]:
    assert isinstance(pod, dict), pod
    role, _, user = pod["metadata"]["annotations"][marks.HELD_BY_ANNOTATION].split(" ", 2)
    return [role, user]


@pytest.mark.parametrize(
    ("user", "role"), [("alice", "owner"), ("carol", "group-admin"), ("root", "admin")]
)
async def test_the_owner_and_admins_hold_a_gang(user: str, role: str) -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    held = await _change(webhook, await _created(webhook), "data is copied", user=user)
    assert _held_by(held) == [role, user]
    await webhook.log.flush()
    row = webhook.decisions.records[-1]
    assert (row.kind, row.outcome, row.details["user"]) == ("hold", "held", user)


async def test_other_users_may_not() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    refused = await _change(webhook, await _created(webhook), "mine now", user="bob")
    assert refused == (
        'metadata.annotations[cellgate.io/hold]: only the owner "alice", an admin of group vision '
        "or a policy admin may hold or release it"
    )


@pytest.mark.parametrize(
    ("holder", "lifts", "may_not"),
    [
        ("alice", ["alice", "carol", "root"], ["bob"]),
        ("carol", ["carol", "root"], ["alice", "bob"]),
        ("root", ["root"], ["alice", "bob", "carol"]),
    ],
)
async def test_the_hold_of_an_admin_is_not_the_owners_to_lift(
    holder: str, lifts: list[str], may_not: list[str]
) -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    held = await _change(webhook, await _created(webhook), "why", user=holder)
    assert isinstance(held, dict)
    for user in lifts:
        released = await _change(webhook, held, None, user=user)
        assert isinstance(released, dict), released
        assert marks.HELD_BY_ANNOTATION not in released["metadata"]["annotations"]
    for user in may_not:
        assert isinstance(await _change(webhook, held, None, user=user), str)
        assert isinstance(await _change(webhook, held, "another reason", user=user), str)


async def test_a_pod_that_is_created_with_a_hold_states_its_owner() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    assert _held_by(await _created(webhook, "not yet")) == ["owner", "alice"]


async def test_marks_of_the_webhook_are_not_for_users() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    for key in (marks.HELD_BY_ANNOTATION, marks.HELD_SECONDS_ANNOTATION):
        annotations = {**pod["metadata"]["annotations"], key: "7"}
        changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
        answer = await webhook.guard.validate(a_review(changed, old=pod))
        assert answer.message == f"metadata.annotations[{key}]: only Cellgate may change it"


async def test_a_hold_without_a_record_is_refused() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    answer = await webhook.guard.validate(a_review(_with(pod, "why"), old=pod))
    assert "without a record" in answer.message


@pytest.mark.parametrize(
    ("hold", "problem"),
    [
        ("", 'must give a reason, such as "data is copied"'),
        ("x; until=noon", 'until= must be a time such as 2026-11-20T08:00:00Z, not "noon"'),
        ("x; after=bert", 'after= must be <namespace>/<gang>, not "bert"'),
        ("x; after=../../secrets", 'after= must be <namespace>/<gang>, not "../../secrets"'),
        ("x; after=LAB/bert", 'after= must be <namespace>/<gang>, not "LAB/bert"'),
        ("x; untill=2026-11-20T08:00:00Z", "untill= is neither until= nor after="),
        ("x; until = 2026-11-20T08:00:00Z", "must write until= without spaces and in small"),
        ("x; After=lab/bert-1", "must write after= without spaces and in small"),
        ("x; after=lab/bert-0", "must not wait for the end of its own gang"),
        ("x; after=a/b; until=2026-11-20T08:00:00Z", "must have one of until= and after="),
        ("x" * 300, "must have at most 256 characters"),
    ],
)
async def test_a_hold_must_be_readable(hold: str, problem: str) -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    refused = await _change(webhook, await _created(webhook), hold, user="alice")
    assert isinstance(refused, str)
    assert refused.startswith(f"metadata.annotations[cellgate.io/hold]: {problem}")


async def test_a_hold_until_a_time_in_the_past_is_warned_of() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    for until, told in (("2020-11-20T10:00:00+02:00", 1), ("2999-11-20T08:00:00Z", 0)):
        changed = _with(pod, f"at night; until={until}")
        answer = await webhook.holds.mutate(a_review(changed, old=pod, user="alice"))
        assert answer.is_allowed
        over = "metadata.annotations[cellgate.io/hold]: 2020-11-20T08:00:00Z is over"
        assert [over in one for one in answer.warnings] == [True] * told


async def test_a_pod_that_has_started_cannot_be_held() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    pod = {**pod, "spec": {**pod["spec"], "schedulingGates": []}}
    refused = await _change(webhook, pod, "too late", user="alice")
    assert isinstance(refused, str)
    assert "it has started, or is about to" in refused


async def test_the_hold_of_a_new_workload_is_on_its_template() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = dict(a_pod().with_gpus(1))
    spec = {"template": {"metadata": {"labels": {}}, "spec": pod["spec"]}}
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
    job["metadata"] = {"name": "bert", "annotations": {marks.HOLD_ANNOTATION: "not yet"}}
    answer = await webhook.templates.mutate(a_review(job))
    stored = json_patch(job, list(answer.patch))
    written = stored["spec"]["template"]["metadata"]["annotations"]
    assert written[marks.HOLD_ANNOTATION] == "not yet"
    job["metadata"]["annotations"] = {marks.HOLD_ANNOTATION: ""}
    refused = await webhook.templates.mutate(a_review(job))
    assert refused.message.startswith("metadata.annotations[cellgate.io/hold]: must give a reason")


async def test_two_gangs_do_not_wait_for_each_others_end() -> None:
    other = a_pod("other").with_gpus(1).gated().submitted_by("alice")
    pod = a_pod().with_gpus(1)
    waits = other.annotated(marks.HOLD_ANNOTATION, f"later; after=lab/{pod['metadata']['name']}")
    for stored, is_refused in ((waits, True), (other, False)):
        webhook = Webhook({"quotas": QUOTAS}, gates_all=True, stored=[dict(stored)])
        held = await _change(
            webhook, await _created(webhook), "second; after=lab/other", user="alice"
        )
        assert isinstance(held, str) is is_refused
        if is_refused:
            assert held == (
                "metadata.annotations[cellgate.io/hold]: gang lab/other is held until the end of "
                "this gang: neither would start"
            )


async def test_a_hold_is_not_changed_by_way_of_the_status() -> None:
    # The review that writes who holds the gang is not asked about the status of a pod.
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    told = {
        marks.HOLD_ANNOTATION: "why",
        marks.HELD_BY_ANNOTATION: "owner 2999-01-01T00:00:00Z alice",
        marks.HELD_SECONDS_ANNOTATION: "0",
    }
    annotations = {**pod["metadata"]["annotations"], **told}
    changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    answer = await webhook.guard.validate(a_review(changed, old=pod, subresource="status"))
    path = "metadata.annotations[cellgate.io/hold]"
    assert f"{path}: change it on the pod itself, not on its status" in answer.message


async def test_a_hold_that_changes_again_and_again_has_a_row_each_time() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod: dict[str, Any] | str = await _created(webhook)
    night, noon = "x; until=2026-11-20T22:00:00Z", "x; until=2026-11-21T12:00:00Z"
    for hold in (night, None, night, noon, noon):
        assert isinstance(pod, dict), pod
        pod = await _change(webhook, pod, hold, user="alice")
    await webhook.log.flush()
    rows = [row for row in webhook.decisions.records if row.kind == "hold"]
    assert [row.details["hold"] for row in rows] == [night, None, night, noon]


async def test_the_extender_writes_the_hold_of_an_earlier_pod_as_it_was() -> None:
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True)
    pod = await _created(webhook)
    told = {
        marks.HOLD_ANNOTATION: "why",
        marks.HELD_BY_ANNOTATION: "admin 2026-11-18T12:00:00Z root",
    }
    annotations = {**pod["metadata"]["annotations"], **told}
    held = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    extender = "system:serviceaccount:cellgate-system:cellgate-extender"
    answer = await webhook.holds.mutate(a_review(held, old=pod, user=extender))
    assert (answer.is_allowed, answer.patch) == (True, ())
    assert (await webhook.guard.validate(a_review(held, old=pod, user=extender))).is_allowed
    assert isinstance(await _change(webhook, held, None, user="alice"), str)
    assert isinstance(await _change(webhook, held, None, user="root"), dict)
