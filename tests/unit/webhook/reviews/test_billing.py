"""Limits of a billing system: within bounds, until a moment, by its identities only, on record."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.follow.policies import PolicySink
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.store import PolicyStore, PolicyText
from policy.submission import GroupName, UserName
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.policy.documents import HEAD
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

METER = "system:serviceaccount:billing:meter"
QUOTAS = f"""{HEAD}Quotas
groups:
- name: vision
  admins: [carol]
  limits: {{leafCells: 64, gangs: 40}}
  users: [{{name: alice, limits: {{leafCells: 16}}}}]
  billing:
    identities: ["{METER}"]
    least: {{leafCells: 8}}
    most: {{leafCells: 128, leafCellHours: {{total: 9000}}}}
- {{name: nlp, limits: {{leafCells: 8}}}}
"""
SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)


def billing(*limits: str) -> str:
    return f"{HEAD}Billing\nlimits: [{', '.join(limits)}]"


def entry(limits: str, *, until: datetime = SOON, more: str = "") -> str:
    return f'{{group: vision, limits: {{{limits}}}, until: "{until.isoformat()}"{more}}}'


def _limits(store: PolicyStore, user: str = "zoe") -> dict[str, float]:
    group = store.policy.quotas.group(GroupName("vision"))
    assert group is not None
    found = group.limits(UserName(user))
    return {f"{limit.scope}: {limit.measure}": limit.most for limit in found}


def _store(text: str, **more: Any) -> PolicyStore:
    store = PolicyStore()
    texts = [(DocumentKind.QUOTAS, QUOTAS), (DocumentKind.BILLING, text)]
    store.update([PolicyText(kind=kind, source=kind, text=one) for kind, one in texts], **more)
    return store


def test_limits_of_billing_replace_those_of_the_group_within_the_bounds() -> None:
    store = _store(billing(entry("leafCells: 500, gangs: 1, leafCellHours: {total: 70}")))
    assert _limits(store) == {
        "group vision: leaf_cells": 128,
        "group vision: gangs": 40,
        "group vision: hours_total": 70,
    }
    store = _store(billing(entry("leafCells: 1", more=", user: alice")))
    assert _limits(store, "alice")["user alice in group vision: leaf_cells"] == 8
    assert _limits(store)["group vision: leaf_cells"] == 64


def test_what_has_expired_does_not_apply() -> None:
    text = billing(entry("leafCells: 100"))
    assert _limits(_store(text, now=SOON - timedelta(seconds=1)))["group vision: leaf_cells"] == 100
    before, after = _store(text), _store(text, now=SOON)
    assert _limits(after)["group vision: leaf_cells"] == 64
    assert after.policy.version != before.policy.version, "it is another policy"
    assert (before.policy.next_expiry, after.policy.next_expiry) == (SOON, None)


def test_a_running_service_notes_that_a_limit_ends() -> None:
    sink = PolicySink(KeptEvents())
    documents = {"quotas": QUOTAS, "billing": billing(entry("leafCells: 100"))}
    sink.replace([a_policy_map(kind, text) for kind, text in documents.items()])
    version = sink.policy.version
    sink.note_time(SOON - timedelta(seconds=1))
    assert sink.policy.version == version
    sink.note_time(SOON)
    assert sink.policy.version != version
    sink.note_time(SOON - timedelta(days=1))
    assert sink.policy.version != version, "a clock that goes back brings nothing back"


def test_the_document_tells_all_its_problems() -> None:
    with pytest.raises(SpecError) as raised:
        parse_document(
            billing(
                '{group: a, limits: {}, until: "2026-12-31"}',
                '{group: a, limits: {leafCells: -1}, until: "2026-12-31T00:00:00Z", reason: 4}',
            )
        )
    assert [str(problem) for problem in raised.value.problems] == [
        "limits[0].until: must be a time with a zone in quotes, such as "
        '"2026-12-31T00:00:00Z", not "2026-12-31"',
        "limits[1].limits.leafCells: must be at least 0, not -1",
        "limits[1].reason: must be a text in quotes, not 4",
        "limits[0].limits: must have at least one limit",
        "limits[1]: duplicate of limits[0]",
    ]


async def _change(text: str, *, user: str = METER, kind: str = "billing", old: str = "") -> Any:
    webhook = Webhook({"quotas": QUOTAS, **({"billing": old} if old else {})})
    before = a_policy_map(kind, old) if old else None
    answer = await webhook.documents.validate(
        a_review(a_policy_map(kind, text), user=user, old=before)
    )
    return webhook, answer


async def test_a_billing_system_changes_limits_on_record() -> None:
    text = billing(entry("leafCells: 100", more=', reason: "invoice 42"'))
    webhook, answer = await _change(text)
    assert answer.is_allowed, answer.message
    told = f"{METER} sets leafCells 100 for group vision until {SOON.isoformat()}: invoice 42"
    assert [event.message for event in webhook.events.written] == [told]
    await webhook.log.flush()
    [row] = webhook.decisions.records
    assert (row.kind, row.reason, row.details) == ("limits", told, {"editor": METER})


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (entry("leafCells: 7"), "limits[0].limits.leafCells: must be from 8 to 128, not 7"),
        (entry("leafCells: 129"), "limits[0].limits.leafCells: must be from 8 to 128, not 129"),
        (entry("gangs: 9"), "limits[0].limits.gangs: may not be changed by billing"),
        (
            entry("leafCells: 9", until=datetime(2020, 1, 1, tzinfo=UTC)),
            "limits[0].until: must be within the next 31 days, not 2020-01-01T00:00:00+00:00",
        ),
    ],
    ids=["below", "above", "another measure", "in the past"],
)
async def test_limits_out_of_bounds_are_refused(limits: str, problem: str) -> None:
    webhook, answer = await _change(billing(limits))
    assert problem in answer.message
    assert not webhook.events.written


async def test_billing_may_change_no_other_group_and_no_other_document() -> None:
    other = entry("leafCells: 9").replace("vision", "nlp")
    _, answer = await _change(billing(other))
    assert "may not change the billed limits of group nlp" in answer.message
    _, answer = await _change(f"{HEAD}Rules\nrules: []", kind="rules")
    assert "may change no other document than Billing" in answer.message
    _, answer = await _change(QUOTAS.replace("leafCells: 64", "leafCells: 640"), kind="quotas")
    assert not answer.is_allowed


@pytest.mark.parametrize("user", ["carol", "mallory"])
async def test_no_other_user_changes_the_limits_of_billing(user: str) -> None:
    _, answer = await _change(billing(entry("leafCells: 100")), user=user)
    assert "may not change the billed limits of group vision" in answer.message
    _, answer = await _change(billing(), user=user, old=billing(entry("leafCells: 100")))
    assert not answer.is_allowed
    for kinds in (("billing", "rules"), ("rules", "billing")):
        texts = {"billing": billing(entry("leafCells: 100")), "rules": f"{HEAD}Rules\nrules: []"}
        before, after = (a_policy_map(kind, texts[kind], name="one") for kind in kinds)
        webhook = Webhook({"quotas": QUOTAS})
        answer = await webhook.documents.validate(a_review(after, user=user, old=before))
        assert "may not change the billed limits of group vision" in answer.message, "by its label"


async def test_a_change_that_is_refused_for_another_reason_is_not_on_record() -> None:
    webhook = Webhook({"quotas": QUOTAS, "billing": billing()})
    second = a_policy_map("billing", billing(entry("leafCells: 100")), name="second")
    answer = await webhook.documents.validate(a_review(second, user=METER))
    assert "there is already a Billing document" in answer.message
    assert not webhook.events.written
