"""Charges beyond the quotas of their group: they use up no limit of it, and rise again later."""

import pytest

from policy.errors import ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Measure, Scope
from policy.quotas.usage import MICROS_PER_HOUR, HeldSums
from policy.submission import ClassName, LeafType, UserName
from state.ledger.ledger import Charged, Held, LeaderTerm, Ledger, Refused
from tests.support.clocks import FrozenTime
from tests.support.state.charges import (
    ALICE,
    ALICE_IN_VISION,
    TERM,
    VISION,
    a_charge,
    at_most,
    gang_key,
)

_TEST, _OPPO = ClassName("test"), ClassName("oppo")
_QUOTA = at_most(8, Measure.LEAF_CELLS, VISION)
_BOB, _A100 = UserName("bob"), LeafType("A100")


def _overflow(gang: str, leaf_count: int = 8, **fields: object) -> Charge:
    return a_charge(
        gang, class_name=_OPPO, is_high=False, leaf_count=leaf_count, rises_to=_TEST, **fields
    )


async def _raise(
    ledger: Ledger, charge: Charge, *, term: LeaderTerm = TERM
) -> Charged | Held | Refused | None:
    return await ledger.raise_class(charge, _TEST, is_high=True, limits=[_QUOTA], term=term)


async def test_overflow_uses_up_no_limit_of_its_group(ledger: Ledger) -> None:
    assert isinstance(await ledger.charge(_overflow("lowered", 32)), Charged)
    colleague = a_charge("colleague", user=_BOB, class_name=_TEST, leaf_count=8)
    assert isinstance(await ledger.charge(colleague, limits=[_QUOTA]), Charged)
    refused = await ledger.charge(a_charge("third", user=_BOB, leaf_count=1), limits=[_QUOTA])
    assert isinstance(refused, Refused)
    assert [(one.used, one.asked) for one in refused.exceeded] == [(8, 1)]


async def test_rules_count_overflow_like_all_that_a_user_holds(ledger: Ledger) -> None:
    await ledger.charge(_overflow("lowered", 32))
    usage = await ledger.usage(ALICE)
    assert usage.used(Measure.LEAF_CELLS) == usage.leaf_cells == 32
    over = await ledger.charge(a_charge("next"), limits=[at_most(33, Measure.LEAF_CELLS)])
    assert isinstance(over, Refused)


async def test_usage_says_how_much_is_overflow(ledger: Ledger) -> None:
    await ledger.charge(_overflow("lowered", 5))
    await ledger.charge(a_charge("within", leaf_count=3))
    for scope in (ALICE_IN_VISION, VISION):
        usage = await ledger.usage(scope)
        assert (usage.leaf_cells, usage.gangs, usage.by_leaf_type) == (8, 2, {"A100": 8})
        assert usage.overflow == HeldSums(leaf_cells=5, gangs=1, by_leaf_type={_A100: 5})
        assert [usage.used(one) for one in (Measure.LEAF_CELLS, Measure.GANGS)] == [3, 1]
        assert usage.used(Measure.LEAF_CELLS_OF_TYPE, a_charge().leaf_type) == 3


async def test_overflow_uses_up_no_hours_of_its_group(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(_overflow("lowered", 5))
    await ledger.charge(a_charge("within", leaf_count=3))
    clock.advance(seconds=3600)
    assert (await ledger.usage(VISION)).day_micros == 3 * MICROS_PER_HOUR
    clock.advance(seconds=24 * 3600)
    within = (await ledger.usage(VISION)).week_micros
    assert within % (3 * MICROS_PER_HOUR) == 0
    await ledger.release([gang_key("lowered"), gang_key("within")], term=TERM)
    assert (await ledger.usage(VISION)).week_micros == within


async def test_overflow_that_expires_leaves_nothing(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(_overflow("lowered"))
    clock.advance(seconds=11)
    assert len(await ledger.expire(term=TERM)) == 1
    usage = await ledger.usage(VISION)
    assert (usage.leaf_cells, usage.overflow, usage.day_micros) == (0, HeldSums(), 0)


async def test_a_gang_is_raised_within_the_limits(ledger: Ledger, clock: FrozenTime) -> None:
    charge = _overflow("lowered")
    await ledger.charge(charge)
    await ledger.confirm([charge.gang], term=TERM)
    clock.advance(seconds=1800)
    raised = await _raise(ledger, charge)
    assert isinstance(raised, Charged)
    live = raised.live
    assert (live.charge.class_name, live.charge.is_high) == (_TEST, True)
    assert (live.charge.rises_to, live.charge.raised_from) == (None, _OPPO)
    assert (live.charge.decision, live.expires_at) == (charge.decision, None)
    assert [live] == [*await ledger.charges()]
    usage = await ledger.usage(VISION)
    assert (usage.leaf_cells, usage.leaf_cells_high, usage.gangs) == (8, 8, 1)
    assert usage.overflow == HeldSums()
    clock.advance(seconds=1800)
    assert (await ledger.usage(VISION)).day_micros == 4 * MICROS_PER_HOUR
    days = await ledger.days(clock().date(), clock().date())
    assert {one.class_name: one.hours for one in days} == {_OPPO: 4.0, _TEST: 4.0}


async def test_a_gang_is_not_raised_beyond_a_limit(ledger: Ledger) -> None:
    charge = _overflow("lowered")
    await ledger.charge(a_charge("holder", leaf_count=1))
    await ledger.charge(charge)
    before = await ledger.usage(VISION)
    refused = await _raise(ledger, charge)
    assert isinstance(refused, Refused)
    assert [(one.limit, one.used, one.asked) for one in refused.exceeded] == [(_QUOTA, 1, 8)]
    assert await ledger.usage(VISION) == before
    await ledger.release([gang_key("holder")], term=TERM)
    assert isinstance(await _raise(ledger, charge), Charged)


async def test_a_gang_is_raised_once(ledger: Ledger) -> None:
    charge = _overflow("lowered")
    await ledger.charge(charge)
    assert isinstance(await _raise(ledger, charge), Charged)
    again = await _raise(ledger, charge)
    assert isinstance(again, Held)
    assert again.live.charge.raised_from == _OPPO


async def test_what_is_within_quota_is_not_raised(ledger: Ledger) -> None:
    charge = a_charge("within", class_name=_OPPO, is_high=False)
    await ledger.charge(charge)
    assert isinstance(await _raise(ledger, charge), Held)


async def test_a_raise_does_not_renew_a_charge_that_has_expired(
    ledger: Ledger, clock: FrozenTime
) -> None:
    charge = a_charge("within", class_name=_OPPO, is_high=False)
    charged = await ledger.charge(charge)
    assert isinstance(charged, Charged)
    clock.advance(seconds=11)
    answer = await _raise(ledger, charge)
    assert isinstance(answer, Held)
    assert answer.live == charged.live
    assert await ledger.charges() == (charged.live,)
    assert await ledger.expire(term=TERM) == (charge,)


async def test_a_charge_that_has_ended_is_not_raised(ledger: Ledger) -> None:
    assert await _raise(ledger, _overflow("gone")) is None


async def test_a_deposed_leader_raises_nothing(ledger: Ledger) -> None:
    charge = _overflow("lowered")
    await ledger.charge(charge)
    await ledger.confirm([], term=LeaderTerm(leadership=TERM.leadership, epoch=TERM.epoch + 1))
    with pytest.raises(ConflictError):
        await _raise(ledger, charge)
    assert [live.charge.class_name for live in await ledger.charges()] == [_OPPO]


async def test_a_member_that_saw_the_class_before_the_raise_looks_again(ledger: Ledger) -> None:
    charge = _overflow("lowered", places=1)
    await ledger.charge(charge)
    await _raise(ledger, charge)
    for answer in (await ledger.resize(charge, 12), await ledger.join(charge, 4)):
        assert isinstance(answer, Held)
        assert (answer.live.charge.class_name, answer.live.charge.leaf_count) == (_TEST, 8)


async def test_overflow_stays_overflow_while_it_grows(ledger: Ledger) -> None:
    charge = _overflow("lowered")
    await ledger.charge(charge)
    grown = await ledger.resize(charge, 12, limits=[_QUOTA])
    assert isinstance(grown, Charged)
    assert grown.live.charge.rises_to == _TEST
    assert (await ledger.usage(VISION)).overflow.leaf_cells == 12
    await ledger.release([charge.gang], term=TERM)
    assert (await ledger.usage(Scope(None, VISION.group))).overflow == HeldSums()
