"""Gangs that quotas lower: they use up no quota, and members of a raised gang follow its class."""

from dataclasses import replace

import pytest

from policy.errors import RequestError
from policy.quotas.limits import Measure
from policy.submission import ClassName
from state.ledger.ledger import Charged
from tests.support.state.charges import TERM, VISION
from tests.support.webhook.admission_world import AdmissionWorld, a_policy

_PROD = ClassName("prod")
_QUOTAS = """groups:
- name: vision
  limits: {leafCells: 8}
  over: oppo
  users: [{name: alice}, {name: bob}]
"""


def _world() -> AdmissionWorld:
    return AdmissionWorld(a_policy(quotas=_QUOTAS))


async def _raise(world: AdmissionWorld, gang: str) -> None:
    """Raise a gang as the leader does."""
    live = next(one for one in await world.ledger.charges() if one.charge.gang.name == gang)
    raised = await world.ledger.raise_class(live.charge, _PROD, is_high=True, limits=(), term=TERM)
    assert isinstance(raised, Charged)


async def test_what_quotas_lower_uses_up_no_quota_of_others() -> None:
    world = _world()
    replica = world.replica()
    lowered = await replica.admit(world.ask("big", cells=32))
    assert (lowered.final_class, lowered.rises_to) == ("oppo", "prod")
    colleague = await replica.admit(world.ask("colleague", user="bob", cells=8))
    assert (colleague.final_class, colleague.rises_to) == ("prod", None)
    third = await replica.admit(world.ask("third", user="bob", cells=1))
    assert (third.final_class, third.rises_to) == ("oppo", "prod")


async def test_the_class_before_the_quotas_is_what_rules_left() -> None:
    rules = "- {priority: prod, current: '> 4', then: test}"
    world = AdmissionWorld(a_policy(rules=rules, quotas=_QUOTAS))
    decision = await world.replica().admit(world.ask("big", cells=32))
    assert (decision.final_class, decision.rises_to) == ("oppo", "test")


async def test_a_gang_that_asks_for_the_lower_class_runs_beyond_quota_too() -> None:
    world = _world()
    decision = await world.replica().admit(world.ask("big", cells=32, class_name="oppo"))
    assert (decision.final_class, decision.rises_to) == ("oppo", "oppo")
    assert world.ledger.current_usage(VISION).used(Measure.LEAF_CELLS) == 0


async def test_without_the_ledger_what_quotas_lower_uses_up_no_quota_either() -> None:
    world = _world()
    replica = world.replica()
    world.ledger.is_away = True
    lowered = await replica.admit(world.ask("big", cells=32))
    colleague = await replica.admit(world.ask("colleague", user="bob", cells=8))
    assert [lowered.final_class, colleague.final_class] == ["oppo", "prod"]
    usage = world.usage.usage(VISION)
    assert (usage.leaf_cells, usage.used(Measure.LEAF_CELLS)) == (40, 8)


async def test_members_of_an_overflow_gang_say_which_class_quotas_keep_from_it() -> None:
    world = _world()
    replica = world.replica()
    await replica.admit(world.ask("big", cells=32, size=4))
    second = await replica.admit(world.ask("big", cells=32, size=4))
    assert (second.final_class, second.rises_to, second.is_new) == ("oppo", "prod", False)


async def test_a_late_member_of_a_raised_gang_has_the_gangs_class() -> None:
    world = _world()
    replica = world.replica()
    await replica.admit(world.ask("big", cells=32, size=4))
    await _raise(world, "big")
    late = await replica.admit(world.ask("big", cells=32, size=4))
    assert (late.final_class, late.effective_class, late.rises_to) == ("prod", None, None)
    assert not late.is_lowered


async def test_a_late_member_that_asks_for_less_keeps_its_class_and_follows_the_gang() -> None:
    world = _world()
    replica = world.replica()
    await replica.admit(world.ask("big", cells=32, size=4))
    await _raise(world, "big")
    late = await replica.admit(world.ask("big", cells=32, size=4, class_name="oppo"))
    assert (late.final_class, late.effective_class) == ("oppo", "prod")


async def test_a_late_member_of_a_native_gang_has_the_class_of_its_pod_group() -> None:
    world = _world()
    replica = world.replica()
    await replica.admit(world.ask("big", cells=32, size=4))
    await _raise(world, "big")
    asked = world.ask("big", cells=32, size=4)
    late = await replica.admit(replace(asked, fixed_class=ClassName("oppo")))
    assert (late.final_class, late.effective_class) == ("oppo", "prod")


async def test_a_member_below_the_class_of_the_first_pods_is_still_refused() -> None:
    world = AdmissionWorld(a_policy(quotas=_QUOTAS.replace("over: oppo", "over: test")))
    replica = world.replica()
    await replica.admit(world.ask("big", cells=32, size=4))
    await _raise(world, "big")
    with pytest.raises(RequestError, match="class oppo instead of prod"):
        await replica.admit(world.ask("big", cells=32, size=4, class_name="oppo"))


async def test_a_member_that_makes_a_raised_gang_larger_needs_room_in_its_quotas() -> None:
    world = _world()
    replica = world.replica()
    await replica.admit(world.member("big", own=16, size=2))
    await _raise(world, "big")
    refused = await replica.admit(world.member("big", own=20, size=2))
    assert refused.outcome == "refused"
