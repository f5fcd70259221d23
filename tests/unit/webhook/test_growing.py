"""Gangs that grow: who pays stays who pays, and what the first member was held to holds for all."""

from dataclasses import replace

import pytest

from policy.decision import Outcome
from policy.limits import Scope
from policy.submission import GroupName
from tests.unit.webhook.admission import World, a_policy
from webhook.verdict import Request

TWO_GROUPS = """groups:
- {name: small, limits: {leafCells: 4}, over: fail, users: [{name: alice}]}
- {name: large, limits: {leafCells: 1000}, over: fail, users: [{name: alice}]}
"""
SMALL = Scope(None, GroupName("small"))


def _paid_by(request: Request, group: str) -> Request:
    return replace(request, group=request.policy.quotas.group(GroupName(group)))


@pytest.mark.parametrize("is_away", [False, True], ids=["ledger", "memory"])
@pytest.mark.parametrize("may_grow", [False, True], ids=["labels", "PodGroup"])
async def test_a_member_that_names_another_group_stays_within_the_limits_of_the_first(
    may_grow: bool, is_away: bool
) -> None:
    world = World(a_policy(quotas=TWO_GROUPS))
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
    world = World(a_policy(quotas=TWO_GROUPS))
    replica = world.replica()
    await replica.admit(world.member("bert", own=1, size=3))
    late = await replica.admit(_paid_by(world.member("bert", own=1, size=3), "large"))
    assert (late.outcome, late.group) == (Outcome.ADMITTED, "small")
