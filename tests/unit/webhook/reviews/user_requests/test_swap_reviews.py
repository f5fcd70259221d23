"""Which users swap which gangs, and what the pod states then."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kube import marks
from policy.submission import GangKey
from simulation.objects.patch import json_patch
from state.promises.promises import PromiseRow
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.state.charges import TERM
from tests.support.twins.promises import MemoryPromises
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- {name: vision, limits: {leafCells: 80}, admins: [carol], users: [{name: alice}, {name: bob}]}
"""
PATH = "metadata.annotations[cellgate.io/swap-with]"


def _pod(name: str, *, user: str = "alice", vc: str = "lab") -> PodBuilder:
    pod = a_pod(name).with_gpus(1).in_vc(vc).submitted_by(user).gated()
    return pod.labelled(marks.GROUP_LABEL, "vision").annotated(marks.DECISION_ANNOTATION, "d")


def _webhook(*stored: PodBuilder) -> Webhook:
    return Webhook({"quotas": QUOTAS}, gates_all=True, stored=[dict(pod) for pod in stored])


async def _swap(
    webhook: Webhook, pod: PodBuilder | dict[str, Any], other: str | None, *, user: str = "alice"
) -> dict[str, Any] | str:
    """The pod after both reviews of the change, or why it is refused."""
    before = dict(pod)
    annotations = {**before["metadata"]["annotations"], marks.SWAP_ANNOTATION: other}
    kept = {key: text for key, text in annotations.items() if text is not None}
    changed = {**before, "metadata": {**before["metadata"], "annotations": kept}}
    answer = await webhook.swaps.mutate(a_review(changed, old=before, user=user))
    if not answer.is_allowed:
        return answer.message
    changed = json_patch(changed, list(answer.patch))
    checked = await webhook.guard.validate(a_review(changed, old=before, user=user))
    return changed if checked.is_allowed else checked.message


def _stated(pod: dict[str, Any] | str) -> list[str]:
    assert isinstance(pod, dict), pod
    role, _, other, user = pod["metadata"]["annotations"][marks.SWAPPED_BY_ANNOTATION].split(" ")
    return [role, other, user]


@pytest.mark.parametrize(
    ("user", "role"), [("alice", "owner"), ("carol", "group-admin"), ("root", "admin")]
)
async def test_the_owner_and_admins_swap_two_gangs(user: str, role: str) -> None:
    webhook = _webhook(_pod("b"))
    swapped = await _swap(webhook, _pod("a"), "b", user=user)
    assert _stated(swapped) == [role, "lab/b", user]
    await webhook.log.flush()
    rows = [row for row in webhook.decisions.records if row.kind == "swap"]
    assert [(row.subject, row.outcome, row.details["with"]) for row in rows] == [
        ("lab/a", "swapped", "lab/b"),
        ("lab/b", "swapped", "lab/a"),
    ]
    assert rows[0].reason.endswith(f"{user} swaps it with gang lab/b")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("bobs", "there is no gang or pod lab/bobs that you may swap"),
        ("a", "must name another gang, not the gang itself"),
        ("runs", "gang lab/runs has started, or is about to: it has no place in the queue"),
        ("over", "gang lab/over has ended, or is about to"),
        (
            "far",
            "gang lab/far waits for cells of VC far, this gang for cells of VC lab: only gangs of "
            "one pool can be swapped",
        ),
        ("a b", 'must be <gang> or <namespace>/<gang>, not "a b"'),
        ("", 'must be <gang> or <namespace>/<gang>, not ""'),
        ("/", 'must be <gang> or <namespace>/<gang>, not "/"'),
    ],
)
async def test_swaps_that_are_refused(other: str, why: str) -> None:
    runs = _pod("runs")._changed("spec", schedulingGates=[])
    over = _pod("over")._changed("metadata", deletionTimestamp="2026-11-18T12:00:00Z")
    webhook = _webhook(_pod("a"), _pod("bobs", user="bob"), runs, over, _pod("far", vc="far"))
    assert await _swap(webhook, _pod("a"), other) == f"{PATH}: {why}"


async def test_a_name_must_mean_one_gang() -> None:
    refused = await _swap(_webhook(_pod("bobs", user="bob")), _pod("a"), "none")
    assert refused == f"{PATH}: there is no gang or pod lab/none that you may swap"
    refused = await _swap(_webhook(_pod("b"), _pod("c")), _pod("a"), "bert")
    assert refused == f"{PATH}: lab/bert names 2 gangs; name a pod of the one that you mean"


async def test_a_gang_of_another_user_is_not_swapped() -> None:
    refused = await _swap(_webhook(_pod("b")), _pod("a"), "b", user="bob")
    assert refused == (
        f'{PATH}: only the owner "alice", an admin of group vision or a policy admin may swap it'
    )


async def test_a_gang_that_has_started_is_not_swapped() -> None:
    runs = _pod("a")._changed("spec", schedulingGates=[])
    refused = await _swap(_webhook(_pod("b")), runs, "b")
    assert refused == (
        f"{PATH}: gang lab/a has started, or is about to: it has no place in the queue"
    )


async def test_a_gang_is_part_of_one_swap() -> None:
    swapped = await _swap(_webhook(_pod("b")), _pod("a"), "b")
    assert isinstance(swapped, dict)
    webhook = Webhook({"quotas": QUOTAS}, gates_all=True, stored=[swapped])
    refused = await _swap(webhook, _pod("b"), "a")
    assert refused == f"{PATH}: gang lab/a is to be swapped with gang lab/b: undo that first"


async def test_the_swap_of_an_admin_is_not_the_owners_to_undo() -> None:
    webhook = _webhook(_pod("b"))
    swapped = await _swap(webhook, _pod("a"), "b", user="carol")
    assert isinstance(swapped, dict)
    refused = await _swap(webhook, swapped, None)
    assert refused == f"{PATH}: the group's admin carol swapped it: that is not yours to change"
    undone = await _swap(webhook, swapped, None, user="carol")
    assert isinstance(undone, dict), undone
    assert marks.SWAPPED_BY_ANNOTATION not in undone["metadata"]["annotations"]
    await webhook.log.flush()
    assert [row.outcome for row in webhook.decisions.records if row.kind == "swap"][-1] == "undone"


@pytest.mark.parametrize("reserved", ["a", "b"])
async def test_a_gang_for_which_cells_are_reserved_is_not_swapped(reserved: str) -> None:
    promises = MemoryPromises()
    gang, at = GangKey("lab", reserved), datetime(2026, 11, 18, tzinfo=UTC)
    row = PromiseRow(gang=gang, made_at=at, ended_at=None, body={})
    await promises.save([row], term=TERM)
    webhook = Webhook({"quotas": QUOTAS}, stored=[dict(_pod("b"))], promises=promises)
    assert await _swap(webhook, _pod("a"), "b") == (
        f"{PATH}: cells are reserved for gang lab/{reserved}: a promised start is not given away"
    )
    await promises.save([replace(row, ended_at=at)], term=TERM)
    assert isinstance(await _swap(webhook, _pod("a"), "b"), dict)


async def test_the_members_of_a_gang_state_one_swap() -> None:
    webhook = _webhook(_pod("b"))
    for index in range(40):
        member = _pod(f"m-{index}").in_gang("bert", size=40)
        assert _stated(await _swap(webhook, member, "b"))[1] == "lab/b"
    await webhook.log.flush()
    assert len([row for row in webhook.decisions.records if row.kind == "swap"]) == 2


async def test_a_flood_of_swaps_is_slowed_down() -> None:
    webhook = _webhook(_pod("b"))
    answers = [await _swap(webhook, _pod(f"a-{index}"), "b") for index in range(40)]
    assert sum(isinstance(answer, dict) for answer in answers) == 30
    assert answers[-1] == 'user "alice" asked for 30 swaps within a minute; try again'
    assert isinstance(await _swap(webhook, _pod("c"), "b", user="root"), dict)


async def test_a_swap_without_a_record_is_refused() -> None:
    pod = dict(_pod("a"))
    annotations = {**pod["metadata"]["annotations"], marks.SWAP_ANNOTATION: "b"}
    changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    answer = await _webhook(_pod("b")).guard.validate(a_review(changed, old=pod))
    assert "without a record" in answer.message


@pytest.mark.parametrize("key", [marks.SWAPPED_BY_ANNOTATION, marks.PLACE_ANNOTATION])
async def test_marks_of_cellgate_are_not_for_users(key: str) -> None:
    webhook, pod = _webhook(), dict(_pod("a"))
    annotations = {**pod["metadata"]["annotations"], key: "owner now lab/b alice"}
    changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    answer = await webhook.guard.validate(a_review(changed, old=pod))
    assert answer.message == f"metadata.annotations[{key}]: only Cellgate may change it"
    new = a_pod("new").with_gpus(1).annotated(key, "owner now lab/b alice")
    created = await webhook.pods.mutate(a_review(new))
    assert key not in json_patch(dict(new), list(created.patch))["metadata"]["annotations"]


async def test_a_new_pod_cannot_be_swapped() -> None:
    pod = a_pod("new").with_gpus(1).annotated(marks.SWAP_ANNOTATION, "b")
    answer = await _webhook().pods.mutate(a_review(pod))
    assert answer.message == f"{PATH}: write it on a pod that exists: a new gang has no place"


async def test_a_swap_is_not_stated_by_way_of_the_status() -> None:
    # The review that decides about swaps is not asked about the status of a pod.
    pod = dict(_pod("a"))
    forged = {
        marks.SWAP_ANNOTATION: "bobs",
        marks.SWAPPED_BY_ANNOTATION: "admin 2026-11-18T12:00:00Z lab/bobs alice",
    }
    annotations = {**pod["metadata"]["annotations"], **forged}
    changed = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    answer = await _webhook().guard.validate(a_review(changed, old=pod, subresource="status"))
    assert f"{PATH}: change it on the pod itself, not on its status" in answer.message
