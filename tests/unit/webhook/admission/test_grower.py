"""Gangs that grow: who pays stays who pays, and what the first member was held to holds for all."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from policy.admission.charge_request import ChargeRequest
from policy.errors import RequestError
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import GroupName, UserName
from tests.support.state.charges import TERM
from tests.support.webhook.admission_world import AdmissionWorld, StaleUsage, a_policy
from webhook.ledger_access.catch_up import catch_up

TWO_GROUPS = """groups:
- {name: small, limits: {leafCells: 4}, over: fail, users: [{name: alice}]}
- {name: large, limits: {leafCells: 1000}, over: fail, users: [{name: alice}]}
"""
SMALL = Scope(None, GroupName("small"))


def _paid_by(request: ChargeRequest, group: str) -> ChargeRequest:
    return replace(request, group=request.policy.quotas.group(GroupName(group)))


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize("may_grow", [False, True], ids=["labels", "PodGroup"])
async def test_a_member_that_names_another_group_stays_within_the_limits_of_the_first(
    may_grow: bool, is_away: bool
) -> None:
    world = AdmissionWorld(a_policy(quotas=TWO_GROUPS))
    replica = world.replica()
    await replica.admit(replace(world.member("bert", own=1, size=3), may_grow=may_grow))
    world.ledger.is_away = is_away
    member = replace(world.member("bert", own=3, size=3), may_grow=may_grow)
    refused = await replica.admit(_paid_by(member, "large"))
    assert refused.outcome is Outcome.REFUSED
    assert "refused by the quotas of group small" in refused.admission.format_refusal()
    world.ledger.is_away = False
    assert (await world.ledger.usage(SMALL)).leaf_cells == 3


async def test_all_members_are_said_to_be_paid_for_by_the_group_of_the_first() -> None:
    world = AdmissionWorld(a_policy(quotas=TWO_GROUPS))
    replica = world.replica()
    await replica.admit(world.member("bert", own=1, size=3))
    late = await replica.admit(_paid_by(world.member("bert", own=1, size=3), "large"))
    assert (late.outcome, late.group) == (Outcome.ADMITTED, "small")


ALICE = Scope(UserName("alice"))


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize("may_grow", [False, True], ids=["labels", "PodGroup"])
async def test_a_gang_that_was_small_at_first_does_not_get_past_the_rules(
    may_grow: bool, is_away: bool
) -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: fail, note: at most 8}"))
    replica = world.replica()
    await replica.admit(world.ask("other", cells=3))
    await replica.admit(replace(world.member("bert", own=1, size=2), may_grow=may_grow))
    world.ledger.is_away = is_away
    refused = await replica.admit(replace(world.member("bert", own=6, size=2), may_grow=may_grow))
    more = 10 if may_grow else 5
    assert refused.admission.format_refusal() == (
        f"alice asked for {more} leaf cells in class prod: refused by rule 1. alice holds 5 leaf "
        f"cells, 5 of them in high classes. Rule 1 (at most 8) refuses class prod: occupied would "
        f"be {more + 5} (5 held, {more} asked for), which is > 8. With {more - 3} fewer leaf "
        "cells held or asked for the rule would not apply."
        + (" Quota database unavailable; last known usage applied." if is_away else "")
    )
    world.ledger.is_away = False
    assert (await world.ledger.usage(ALICE)).leaf_cells == 5


async def test_members_of_a_pod_group_stay_within_the_rules_however_many_come_at_once() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: fail}"))
    replicas = [world.replica() for _ in range(3)]
    members = [replace(world.member("bert", own=1, size=2), may_grow=True) for _ in range(20)]
    answers = await asyncio.gather(
        *(replicas[place % 3].admit(one) for place, one in enumerate(members))
    )
    assert [one.outcome for one in answers].count(Outcome.ADMITTED) == 8
    assert (await world.ledger.usage(ALICE)).leaf_cells == 8


async def test_a_gang_that_would_have_been_lowered_does_not_grow() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupiedHigh: '> 4', priority: prod, then: oppo}"))
    replica = world.replica()
    await replica.admit(replace(world.member("bert", own=2, size=2), may_grow=True))
    member = replace(world.member("bert", own=2, size=2), may_grow=True)
    assert (await replica.admit(member)).final_class == "prod"
    with pytest.raises(RequestError) as refused:
        await replica.admit(member)
    assert str(refused.value) == (
        'with this pod, gang lab/bert would have class "oppo", but its members have class "prod", '
        "which cannot be changed: alice holds 4 leaf cells, 4 of them in high classes. Rule 1 "
        "lowers class prod to oppo: occupiedHigh would be 6 (4 held, 2 asked for), which is > 4. "
        "With 2 fewer leaf cells held or asked for in high classes the rule would not apply."
    )


async def test_a_place_that_is_left_is_taken_whatever_the_rules_say_by_then() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 4', then: fail}"))
    replica = world.replica()
    member = replace(world.member("bert", own=2, size=2), may_grow=True)
    for _ in range(2):
        assert (await replica.admit(member)).outcome is Outcome.ADMITTED
    assert (await replica.admit(member)).outcome is Outcome.REFUSED


async def test_a_gang_grows_by_usage_of_now() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: fail}"))
    usage = StaleUsage(world, leaf_cells=1000)
    replica = world.replica(usage)
    one = replace(world.member("bert", own=2, size=1), may_grow=True, is_alone=False)
    members = [replace(one, decision=uuid4()) for _ in range(5)]
    outcomes = [(await replica.admit(member)).outcome for member in members]
    assert outcomes == [Outcome.ADMITTED] * 4 + [Outcome.REFUSED]


async def test_a_gang_of_any_type_has_no_members_of_a_type_that_the_quotas_limit() -> None:
    quotas = (
        "groups: [{name: vision, limits: {byLeafType: {A100: 4}}, over: fail, "
        "users: [{name: alice}]}]"
    )
    world = AdmissionWorld(a_policy(quotas=quotas))
    replica = world.replica()
    await replica.admit(world.ask("bert", cells=8, size=8))
    with pytest.raises(RequestError, match="leaf type A100 instead of any: members of a gang"):
        await replica.admit(world.ask("bert", cells=8, size=8, leaf_type="A100"))
    other = await replica.admit(world.ask("bert", cells=8, size=8, leaf_type="K80"))
    assert other.outcome is Outcome.ADMITTED


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize(
    ("own", "size"), [(1, 1), (1, 2), (4, 1)], ids=["one pod", "two pods", "one large pod"]
)
async def test_members_that_say_the_gang_is_larger_pay_for_themselves(
    own: int, size: int, is_away: bool
) -> None:
    quotas = "groups: [{name: vision, limits: {leafCells: 6}, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(quotas=quotas))
    replica = world.replica()
    first = replace(world.member("bert", own=own, size=size), is_alone=False)
    assert (await replica.admit(first)).outcome is Outcome.ADMITTED
    world.ledger.is_away = is_away
    answers = [await replica.admit(world.member("bert", own=1, size=20)) for _ in range(20)]
    assert [one.outcome for one in answers].count(Outcome.ADMITTED) == 6 - own * size
    assert "Group vision holds 6 leaf cells" in answers[-1].admission.format_refusal()


async def test_a_running_gang_whose_size_was_raised_is_charged_for_more() -> None:
    quotas = "groups: [{name: vision, limits: {leafCells: 6}, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(quotas=quotas))
    replica = world.replica()
    first = world.ask("bert", cells=2, size=2)
    await replica.admit(first)
    await world.ledger.confirm([first.submission.gang], term=TERM)
    await replica.admit(world.ask("bert", cells=6, size=6))
    assert (await world.ledger.usage(ALICE)).leaf_cells == 6
    assert (await replica.admit(world.ask("bert", cells=7, size=7))).outcome is Outcome.REFUSED


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize("asked", [(1, 4, 4, 2), (2, 1, 5, 3), (3, 3, 3, 3), (4, 1, 1, 1)], ids=str)
async def test_a_gang_is_charged_for_each_member_that_is_larger_than_the_first(
    asked: tuple[int, ...], is_away: bool
) -> None:
    world = AdmissionWorld(a_policy())
    replica = world.replica()
    for place, own in enumerate(asked):
        await replica.admit(world.member("bert", own=own, size=4))
        world.ledger.is_away = is_away and place < 3
    if is_away:
        await catch_up(world.ledger, world.usage.assumed)
    charged = (await world.ledger.usage(ALICE)).leaf_cells
    assert charged == sum(max(own, asked[0]) for own in asked)


def _in_late_gang(world: AdmissionWorld, own: int) -> ChargeRequest:
    """Return a member of a gang of four, two of which are created later and have eight cells."""
    request = world.member("bert", own=own, size=4)
    total = 4 * own + 2 * max(0, 8 - own)
    submission = replace(request.submission, leaf_count=total)
    return replace(request, submission=submission, late=(8, 8))


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
async def test_members_that_are_created_later_are_charged_with_the_first(is_away: bool) -> None:
    quotas = "groups: [{name: lab, limits: {leafCells: 18}, over: fail, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(quotas=quotas))
    replica = world.replica()
    assert (await replica.admit(_in_late_gang(world, 1))).outcome is Outcome.ADMITTED
    assert (await world.ledger.usage(ALICE)).leaf_cells == 18
    world.ledger.is_away = is_away
    for own in (1, 8, 8):
        assert (await replica.admit(_in_late_gang(world, own))).outcome is Outcome.ADMITTED
    refused = await replica.admit(_in_late_gang(world, 8))
    assert refused.outcome is Outcome.REFUSED, "the gang has two such members"
    world.ledger.is_away = False
    assert (await world.ledger.usage(ALICE)).leaf_cells == 18


async def test_a_gang_without_quota_for_its_late_members_is_not_admitted() -> None:
    quotas = "groups: [{name: lab, limits: {leafCells: 17}, over: fail, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(quotas=quotas))
    assert (await world.replica().admit(_in_late_gang(world, 1))).outcome is Outcome.REFUSED


async def test_what_is_reserved_for_late_members_is_taken_once_however_many_come_at_once() -> None:
    quotas = "groups: [{name: lab, limits: {leafCells: 18}, over: fail, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(quotas=quotas))
    replicas = [world.replica() for _ in range(2)]
    await replicas[0].admit(_in_late_gang(world, 1))
    answers = await asyncio.gather(
        *(replicas[place % 2].admit(_in_late_gang(world, 8)) for place in range(12))
    )
    assert [one.outcome for one in answers].count(Outcome.ADMITTED) == 2
    assert (await world.ledger.usage(ALICE)).leaf_cells == 18
