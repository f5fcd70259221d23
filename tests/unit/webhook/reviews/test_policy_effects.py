"""A dry run of a policy document is told what it would have changed over the last day."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from policy.parser import DocumentKind
from service.clock import Clock
from state.log.records import DecisionRecord
from tests.support.kube.config_maps import a_policy_map
from tests.support.policy.documents import HEAD
from tests.support.state.records import a_decision
from tests.support.twins.past import MemoryPast
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.policy_effects import policy_effects, recent_admissions
from webhook.policy_effects.policy_effects import (
    ASK_AGAIN,
    DAMAGED,
    TOO_LONG,
    UNKNOWN,
    PolicyEffects,
)
from webhook.policy_effects.recent_admissions import RecentAdmissions
from webhook.wire import ReviewResponse

LOWERED = f'{HEAD}Rules\nrules: [{{priority: prod, occupied: "> 4", then: oppo}}]'


def an_admission(number: int, *, minutes: float) -> DecisionRecord:
    """A gang of alice with four leaf cells, so many minutes ago."""
    return a_decision(
        f"lab/gang-{number}",
        at=datetime.now(UTC) - timedelta(minutes=minutes),
        outcome="admitted",
        details={
            "decision": str(UUID(int=number)),
            "user": "alice",
            "group": None,
            "vc": "default",
            "requestedClass": "prod",
            "leafCount": 4,
        },
        inputs={"wording": 1, "usage": [0, 0]},
    )


def a_past(*, minutes: float = 70.0) -> MemoryPast:
    """Three gangs, one after the other; each is held for an hour, since no charge is recorded."""
    return MemoryPast([an_admission(number, minutes=minutes * number) for number in (3, 2, 1)])


async def a_webhook(past: MemoryPast) -> Webhook:
    webhook = Webhook(past=past)
    assert webhook.recent is not None
    for _ in range(200):
        if await webhook.recent.read_on():
            break
    return webhook


async def apply(
    webhook: Webhook, text: str = LOWERED, *, kind: str = "rules", is_dry_run: bool = True
) -> ReviewResponse:
    review = a_review(a_policy_map(kind, text), user="root", dry_run=is_dry_run)
    return await webhook.documents.validate(review)


OVER = "cellgate: over the last 24 h (3 submissions): "


async def test_a_dry_run_is_told() -> None:
    response = await apply(await a_webhook(a_past()))
    assert response.is_allowed
    assert response.warnings[0] == f"{OVER}no submission would have been decided otherwise"
    response = await apply(await a_webhook(a_past(minutes=10.0)))
    lowered = "2 gangs more would have been lowered to oppo (alice 2)"
    assert response.warnings[0] == f"{OVER}{lowered}"
    assert response.warnings[1].startswith("cellgate: not known: how users would have reacted")


async def test_a_real_apply_is_told_nothing_and_reads_nothing() -> None:
    past = a_past()
    webhook = await a_webhook(past)
    past.is_away = True
    response = await apply(webhook, is_dry_run=False)
    assert (response.is_allowed, list(response.warnings)) == (True, [])


async def test_a_dry_run_of_a_deletion_is_told() -> None:
    webhook = await a_webhook(a_past())
    webhook.sink.upsert(a_policy_map("rules", f"{HEAD}Rules\nrules: [{{then: oppo}}]"))
    deletion = a_review(None, old=a_policy_map("rules", LOWERED), user="root", dry_run=True)
    deleted = await webhook.documents.validate(deletion)
    assert "3 gangs more would have had the higher class prod (alice 3)" in deleted.warnings[0]


async def test_an_unchanged_policy_is_told_nothing() -> None:
    webhook = await a_webhook(a_past())
    webhook.sink.upsert(a_policy_map("rules", LOWERED))
    assert list((await apply(webhook)).warnings) == []


async def test_what_needs_the_planner_names_the_command() -> None:
    queues = f"{HEAD}Queues\nlevels: [{{name: all, strategy: fifo}}]"
    response = await apply(await a_webhook(a_past()), queues, kind=DocumentKind.QUEUES.label)
    (told,) = response.warnings
    assert "the Queues document would have changed needs the planner" in told
    assert "cellgate what-if --policy" in told


async def test_an_answer_that_takes_longer_comes_with_a_later_dry_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(policy_effects, "_ANSWER_SECONDS", 0.05)
    tell = policy_effects._tell

    def slowly(*args: Any, **fields: Any) -> list[str]:
        may_go_on.wait(10.0)
        return tell(*args, **fields)

    past = a_past()
    webhook = await a_webhook(past)
    with patch.object(policy_effects, "_tell", slowly):
        assert list((await apply(webhook)).warnings) == [ASK_AGAIN]
        assert list((await apply(webhook)).warnings) == [ASK_AGAIN]
        may_go_on.set()
        async with asyncio.timeout(10):
            while ASK_AGAIN in (response := await apply(webhook)).warnings:
                await asyncio.sleep(0.01)
    assert "(3 submissions)" in response.warnings[0]
    past.is_away = True  # the answer is remembered
    assert list((await apply(webhook)).warnings) == list(response.warnings)


async def test_without_a_database_the_answer_is_not_known_and_not_remembered() -> None:
    past = a_past()
    webhook = await a_webhook(past)
    past.is_away = True
    assert list((await apply(webhook)).warnings) == [UNKNOWN]
    past.is_away = False
    assert "(3 submissions)" in (await apply(webhook)).warnings[0]


@pytest.mark.parametrize("details", [{"leafCount": "many"}, ["leafCount"], None])
async def test_no_damaged_row_fails_a_review(details: Any) -> None:
    past = a_past()
    past.records = [replace(past.records[0], details=details), *past.records[1:]]
    response = await apply(await a_webhook(past))
    assert (response.is_allowed, list(response.warnings)) == (True, [DAMAGED])


async def test_a_play_ends_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter waits for its threads: a pod would be killed only after its grace period."""
    effects = PolicyEffects(a_past(), clock=Clock())
    may_go_on = effects._until_stopped()
    running = asyncio.create_task(effects.run())
    await asyncio.sleep(0)
    assert may_go_on()
    running.cancel()
    await asyncio.wait([running])
    assert not may_go_on()


async def test_many_dry_runs_at_once_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_effects, "_MOST_RUNNING", 1)
    monkeypatch.setattr(policy_effects, "_ANSWER_SECONDS", 0.05)
    may_go_on, plays = threading.Event(), 0

    def slowly(*_: Any, **__: Any) -> list[str]:
        nonlocal plays
        plays += 1
        may_go_on.wait(10.0)
        return []

    webhook = await a_webhook(a_past())
    with patch.object(policy_effects, "_tell", slowly):
        assert list((await apply(webhook)).warnings) == [ASK_AGAIN]
        other = f"{HEAD}Rules\nrules: [{{then: oppo}}]"
        assert list((await apply(webhook, other)).warnings) == [ASK_AGAIN]
        may_go_on.set()
        assert list((await apply(webhook)).warnings) == []
    assert plays == 1


async def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_effects, "_LONGEST_SECONDS", 0.0)
    assert list((await apply(await a_webhook(a_past()))).warnings) == [TOO_LONG]


async def test_new_rows_are_read_and_old_ones_dropped() -> None:
    now = datetime.now(UTC)
    past = a_past()
    recent = RecentAdmissions(past, clock=Clock(now=lambda: now))
    while not await recent.read_on():
        pass
    assert [row.subject for row in recent.rows] == ["lab/gang-3", "lab/gang-2", "lab/gang-1"]
    assert recent.until - recent.since == timedelta(days=1) - timedelta(seconds=10)
    past.records = [*past.records, replace(an_admission(4, minutes=0.0), at=now)]
    now += timedelta(seconds=60)
    assert await recent.read_on()
    assert [row.subject for row in recent.rows][-2:] == ["lab/gang-1", "lab/gang-4"]
    now += timedelta(hours=22)
    while not await recent.read_on():
        pass
    assert [row.subject for row in recent.rows] == ["lab/gang-1", "lab/gang-4"]
    assert recent.since == now - timedelta(days=1)


async def test_of_too_many_rows_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_admissions, "_MOST", 2)
    past, now = a_past(), datetime.now(UTC)
    recent = RecentAdmissions(past, clock=Clock(now=lambda: now))
    while not await recent.read_on():
        pass
    assert [row.subject for row in recent.rows] == ["lab/gang-2", "lab/gang-1"]
    past.records = [*past.records, replace(an_admission(4, minutes=0.0), at=now)]
    now += timedelta(seconds=60)
    assert await recent.read_on()
    assert [row.subject for row in recent.rows] == ["lab/gang-1", "lab/gang-4"]
    assert recent.since == past.records[1].at


async def test_after_an_outage_what_is_new_is_read_a_stretch_at_a_time() -> None:
    past, now = a_past(), datetime.now(UTC)
    recent = RecentAdmissions(past, clock=Clock(now=lambda: now))
    while not await recent.read_on():
        pass
    past.longest, now = timedelta(minutes=15), now + timedelta(days=3)
    past.records = [replace(an_admission(4, minutes=0.0), at=now - timedelta(minutes=1))]
    assert not await recent.read_on()
    for _ in range(100):
        if await recent.read_on():
            break
    assert [row.subject for row in recent.rows] == ["lab/gang-4"]
    assert (recent.since, recent.until) == (now - timedelta(days=1), now - timedelta(seconds=10))


async def test_of_a_flood_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_admissions, "_MOST", 2)
    past = MemoryPast([an_admission(number, minutes=number) for number in (5, 4, 3, 2, 1)])
    recent = RecentAdmissions(past, clock=Clock())
    assert await recent.read_on()
    assert [row.subject for row in recent.rows] == ["lab/gang-2", "lab/gang-1"]
    assert recent.since == past.records[2].at


async def test_while_the_database_is_away_what_is_known_stays() -> None:
    past, now = a_past(), datetime.now(UTC)
    recent = RecentAdmissions(past, clock=Clock(now=lambda: now))
    while not await recent.read_on():
        pass
    past.is_away, now = True, now + timedelta(seconds=60)
    until = recent.until
    assert await recent.read_on()  # not at once again
    assert (len(recent.rows), recent.until) == (3, until)
    past.is_away = False
    assert await recent.read_on()
    assert recent.until > until
