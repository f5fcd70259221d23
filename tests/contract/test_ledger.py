"""The ledger, on memory, on our embedded Postgres and on a stock server."""

import asyncio
import uuid
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from policy.errors import ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Exceeded, Measure, Scope
from policy.quotas.usage import MICROS_PER_HOUR, ScopeUsage
from policy.submission import ClassName, GroupName, LeafType, UserName, VcName
from state.ledger.ledger import (
    Charged,
    DayUse,
    Held,
    Holding,
    LeaderTerm,
    Ledger,
    LedgerDrift,
    LiveCharge,
    Refused,
)
from tests.support.clocks import EVENING, FrozenTime
from tests.support.state.charges import (
    ALICE,
    ALICE_IN_VISION,
    TERM,
    VISION,
    a_charge,
    at_most,
    gang_key,
)


async def test_a_charge_counts_for_user_member_and_group(ledger: Ledger) -> None:
    charge = a_charge()
    answer = await ledger.charge(charge)
    held: Any = {"leaf_cells": 4, "leaf_cells_high": 4, "gangs": 1, "by_leaf_type": {"A100": 4}}
    assert answer == Charged(
        live=LiveCharge(
            charge=charge, charged_at=EVENING, expires_at=EVENING + timedelta(seconds=10)
        ),
        usage=tuple(ScopeUsage(scope=scope, **held) for scope in (ALICE, ALICE_IN_VISION, VISION)),
    )
    assert await ledger.usage(VISION) == ScopeUsage(scope=VISION, **held)
    assert await ledger.charges() == (answer.live,)


async def test_a_charge_without_group_type_or_high_class_counts_where_it_can(
    ledger: Ledger,
) -> None:
    await ledger.charge(a_charge(group=None, leaf_type=None, is_high=False, leaf_count=3))
    assert await ledger.usage(ALICE) == ScopeUsage(scope=ALICE, leaf_cells=3, gangs=1)
    assert await ledger.usage(VISION) == ScopeUsage(scope=VISION)


async def test_the_same_decision_gets_the_same_answer(ledger: Ledger) -> None:
    charge = a_charge()
    first = await ledger.charge(charge, limits=[at_most(4, Measure.LEAF_CELLS)])
    assert await ledger.charge(charge, limits=[at_most(4, Measure.LEAF_CELLS)]) == first
    assert (await ledger.usage(ALICE)).leaf_cells == 4


async def test_another_decision_for_a_charged_gang_gets_the_charge_there_is(
    ledger: Ledger,
) -> None:
    first = await ledger.charge(a_charge())
    assert isinstance(first, Charged)
    other = a_charge(class_name=ClassName("oppo"), leaf_count=1, user=UserName("bob"))
    assert await ledger.charge(other) == Held(live=first.live, usage=first.usage)
    assert (await ledger.usage(Scope(UserName("bob")))).gangs == 0


async def test_a_decision_that_comes_again_with_another_request_is_told_what_is_charged(
    ledger: Ledger,
) -> None:
    first = await ledger.charge(a_charge())
    assert isinstance(first, Charged)
    for change in ({"leaf_count": 9}, {"class_name": ClassName("oppo")}, {"group": None}):
        changed = replace(first.live.charge, **change)
        assert await ledger.charge(changed) == Held(live=first.live, usage=first.usage)
    assert (await ledger.usage(ALICE)).leaf_cells == 4


@pytest.mark.parametrize(
    "charge",
    [
        a_charge(user=UserName("")),
        a_charge(group=GroupName("")),
        a_charge(user=UserName("".join(map(chr, range(200, 1600))))),
        a_charge("".join(map(chr, range(200, 1600)))),
        a_charge(vc=VcName("".join(map(chr, range(200, 1600))))),
        a_charge(leaf_count=2**31),
        a_charge(leaf_count=-1),
    ],
    ids=["no user", "no group", "long user", "long gang", "long VC", "too many", "too few"],
)
async def test_what_no_ledger_can_hold_is_refused_and_costs_no_other(
    ledger: Ledger, charge: Charge
) -> None:
    with pytest.raises(ValueError, match=r"empty|can be stored|not within"):
        await ledger.charge(charge)
    other = a_charge("other")
    assert (await ledger.reconcile([charge, other], term=TERM)).created == (other,)
    await ledger.release([other.gang], term=TERM)


async def test_a_gang_that_cannot_be_stored_does_not_block_others(
    ledger: Ledger, clock: FrozenTime
) -> None:
    """A label says how large a gang is: leaf-cell-time of months must fit, whatever it says."""
    huge = a_charge("huge", leaf_count=2**31 - 1)
    await ledger.charge(huge)
    await ledger.confirm([huge.gang], term=TERM)
    clock.advance(days=400)
    limits = [at_most(5, Measure.HOURS_DAY, ALICE)]
    assert isinstance(await ledger.charge(a_charge("later"), limits=limits), Refused)
    bob = a_charge("bob", user=UserName("bob"))
    plenty = [at_most(1e300, Measure.HOURS_MONTH, Scope(UserName("bob")))]
    assert isinstance(await ledger.charge(bob, limits=plenty), Charged)
    assert (await ledger.days(date(2026, 6, 1), date(2026, 6, 1)))[0].leaf_micros >= 2**63 - 1
    assert await ledger.release([huge.gang], term=TERM) == {huge.gang}
    assert (await ledger.usage(VISION)).leaf_cells == 4


async def test_a_decision_is_that_of_one_gang(ledger: Ledger) -> None:
    decision = uuid.uuid4()
    await ledger.charge(a_charge("a", decision=decision))
    with pytest.raises(ValueError, match="another gang"):
        await ledger.charge(a_charge("b", decision=decision))
    assert (await ledger.usage(ALICE)).gangs == 1


async def test_all_limits_that_are_exceeded_are_told_and_nothing_is_charged(
    ledger: Ledger,
) -> None:
    await ledger.charge(a_charge("first"))
    limits = [
        at_most(7, Measure.LEAF_CELLS),
        at_most(8, Measure.LEAF_CELLS, VISION),
        at_most(7, Measure.LEAF_CELLS_HIGH, ALICE_IN_VISION),
        at_most(6, Measure.LEAF_CELLS_OF_TYPE, VISION, leaf_type=LeafType("A100")),
        at_most(1, Measure.LEAF_CELLS_OF_TYPE, VISION, leaf_type=LeafType("V100")),
        at_most(1, Measure.GANGS, VISION),
        at_most(0, Measure.GANGS, Scope(UserName("bob"))),
    ]
    answer = await ledger.charge(a_charge("second"), limits=limits)
    assert answer == Refused(
        exceeded=(
            Exceeded(limit=limits[0], used=4, asked=4),
            Exceeded(limit=limits[2], used=4, asked=4),
            Exceeded(limit=limits[3], used=4, asked=4),
            Exceeded(limit=limits[5], used=1, asked=1),
        )
    )
    assert (await ledger.usage(ALICE)).leaf_cells == 4
    assert len(await ledger.charges()) == 1


async def test_a_limit_can_be_used_up_exactly(ledger: Ledger) -> None:
    limits = [at_most(8, Measure.LEAF_CELLS), at_most(2, Measure.GANGS)]
    assert isinstance(await ledger.charge(a_charge("a"), limits=limits), Charged)
    assert isinstance(await ledger.charge(a_charge("b"), limits=limits), Charged)
    assert isinstance(await ledger.charge(a_charge("c", leaf_count=0), limits=limits), Refused)


async def test_a_limit_of_high_classes_is_none_for_others(ledger: Ledger) -> None:
    limits = [at_most(0, Measure.LEAF_CELLS_HIGH)]
    assert isinstance(await ledger.charge(a_charge(is_high=False), limits=limits), Charged)


async def test_a_limit_of_low_classes_counts_them_alone_and_is_none_for_high_ones(
    ledger: Ledger,
) -> None:
    limits = [at_most(6, Measure.LEAF_CELLS_LOW)]
    await ledger.charge(a_charge("high", leaf_count=9))
    low = a_charge("low", leaf_count=4, is_high=False)
    assert isinstance(await ledger.charge(low, limits=limits), Charged)
    more = a_charge("more", leaf_count=4, is_high=False)
    assert await ledger.charge(more, limits=limits) == Refused(
        exceeded=(Exceeded(limit=limits[0], used=4, asked=4),)
    )
    assert isinstance(await ledger.charge(a_charge("higher"), limits=limits), Charged)


async def test_hours_are_refused_when_none_is_left(ledger: Ledger, clock: FrozenTime) -> None:
    limits = [at_most(6, Measure.HOURS_DAY, VISION), at_most(999, Measure.HOURS_MONTH)]
    await ledger.charge(a_charge("a"))
    await ledger.confirm([gang_key("a")], term=TERM)
    clock.advance(hours=1)
    assert isinstance(await ledger.charge(a_charge("b"), limits=limits), Charged)
    clock.advance(minutes=15)
    answer = await ledger.charge(a_charge("c"), limits=limits)
    assert answer == Refused(exceeded=(Exceeded(limit=limits[0], used=6, asked=0),))
    assert str(answer.exceeded[0]) == "group vision: hours day: 6 used, 0 asked for, at most 6"


async def test_hours_start_again_with_day_week_and_month(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(a_charge("a", leaf_count=2))
    await ledger.confirm([gang_key("a")], term=TERM)
    clock.advance(hours=1)
    before = await ledger.usage(ALICE)
    clock.advance(hours=4)  # Monday, June 1st, 3 o'clock
    after = await ledger.usage(ALICE)
    hours = MICROS_PER_HOUR
    assert (before.day_micros, before.week_micros, before.month_micros) == (2 * hours,) * 3
    assert (after.day_micros, after.week_micros, after.month_micros) == (6 * hours,) * 3
    await ledger.release([gang_key("a")], term=TERM)
    clock.advance(days=1)
    later = await ledger.usage(ALICE)
    assert (later.day_micros, later.week_micros, later.month_micros) == (0, 6 * hours, 6 * hours)
    days = await ledger.days(date(2026, 5, 1), date(2026, 6, 30))
    assert [(use.day, use.hours) for use in days] == [
        (date(2026, 5, 31), 4.0),
        (date(2026, 6, 1), 6.0),
    ]


async def test_days_are_told_by_all_that_people_ask_for(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(a_charge("a", leaf_count=1))
    await ledger.charge(a_charge("b", leaf_count=1))
    await ledger.confirm([gang_key("a"), gang_key("b")], term=TERM)
    clock.advance(minutes=30)
    await ledger.release([gang_key("a")], term=TERM)
    assert await ledger.days(date(2026, 5, 31), date(2026, 5, 31)) == (
        DayUse(
            day=date(2026, 5, 31),
            user=UserName("alice"),
            group=GroupName("vision"),
            vc=VcName("lab"),
            class_name=ClassName("prod"),
            leaf_type=LeafType("A100"),
            leaf_micros=MICROS_PER_HOUR,
        ),
    )
    assert await ledger.days(date(2026, 6, 1), date(2026, 6, 1)) == ()


async def test_an_unconfirmed_charge_expires_and_costs_no_hours(
    ledger: Ledger, clock: FrozenTime
) -> None:
    charge = a_charge()
    await ledger.charge(charge)
    clock.advance(seconds=9)
    assert await ledger.expire(term=TERM) == ()
    clock.advance(hours=4)  # across the end of day, week and month
    assert await ledger.expire(term=TERM) == (charge,)
    assert await ledger.usage(VISION) == ScopeUsage(scope=VISION)
    assert await ledger.days(date(2026, 5, 1), date(2026, 6, 30)) == ()


async def test_a_confirmed_charge_does_not_expire(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(a_charge())
    assert await ledger.confirm([gang_key("bert"), gang_key("x")], term=TERM) == {gang_key("bert")}
    assert await ledger.confirm([gang_key("bert")], term=TERM) == {gang_key("bert")}
    clock.advance(days=1)
    assert await ledger.expire(term=TERM) == ()
    assert (await ledger.charges())[0].expires_at is None


async def test_a_charge_that_is_asked_for_again_after_its_time_starts_anew(
    ledger: Ledger, clock: FrozenTime
) -> None:
    charge = a_charge()
    await ledger.charge(charge)
    clock.advance(seconds=30)
    await ledger.charge(charge)
    assert await ledger.expire(term=TERM) == ()
    [live] = await ledger.charges()
    assert live.expires_at == EVENING + timedelta(seconds=40)


async def test_a_released_gang_can_be_charged_again(ledger: Ledger) -> None:
    await ledger.charge(a_charge())
    assert await ledger.release([gang_key("bert"), gang_key("x")], term=TERM) == {gang_key("bert")}
    assert await ledger.release([gang_key("bert")], term=TERM) == frozenset()
    assert await ledger.usage(ALICE) == ScopeUsage(scope=ALICE)
    assert isinstance(await ledger.charge(a_charge()), Charged)


async def test_holdings_are_known_for_every_moment(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.charge(a_charge("a"))
    clock.advance(seconds=5)
    await ledger.charge(a_charge("b", leaf_count=1))
    clock.advance(seconds=5)
    await ledger.release([gang_key("a")], term=TERM)
    clock.advance(seconds=5)
    held = Holding(
        user=UserName("alice"), group=GroupName("vision"), vc=VcName("lab"),
        class_name=ClassName("prod"), is_high=True, leaf_type=LeafType("A100"),
        leaf_cells=1, gangs=1,
    )  # fmt: skip
    assert await ledger.holdings() == (held,)
    past = [await ledger.holdings(EVENING + timedelta(seconds=s)) for s in (-1, 0, 5, 9, 10)]
    numbers = [[(row.leaf_cells, row.gangs) for row in rows] for rows in past]
    assert numbers == [[], [(4, 1)], [(5, 2)], [(5, 2)], [(1, 1)]]


async def test_reconcile_finds_nothing_when_all_is_well(ledger: Ledger, clock: FrozenTime) -> None:
    charge, fresh = a_charge(), a_charge("fresh")
    await ledger.charge(charge)
    await ledger.charge(fresh)
    assert await ledger.reconcile([charge], term=TERM, grace_seconds=0) == LedgerDrift()
    expiries = {live.charge.gang.name: live.expires_at for live in await ledger.charges()}
    assert expiries == {"bert": None, "fresh": EVENING + timedelta(seconds=10)}


async def test_reconcile_makes_the_ledger_equal_to_the_pods(
    ledger: Ledger, clock: FrozenTime
) -> None:
    gone, other, missing = a_charge("gone"), a_charge("other"), a_charge("missing", leaf_count=100)
    for charge in (gone, other):
        await ledger.charge(charge)
    await ledger.confirm([gone.gang, other.gang], term=TERM)
    clock.advance(minutes=1)
    changed = a_charge("other", leaf_count=2, user=UserName("bob"))
    drift = await ledger.reconcile([changed, missing], term=TERM)
    assert drift == LedgerDrift(released=(gone,), created=(missing, changed), corrected=(other,))
    assert [live.charge for live in await ledger.charges()] == [missing, changed]
    assert (await ledger.usage(ALICE)).leaf_cells == 100
    assert (await ledger.usage(VISION)).leaf_cells == 102
    assert await ledger.reconcile([changed, missing], term=TERM) == LedgerDrift()


async def test_reconcile_spares_charges_that_are_newer_than_the_list(
    ledger: Ledger, clock: FrozenTime
) -> None:
    await ledger.charge(a_charge())
    await ledger.confirm([gang_key("bert")], term=TERM)
    clock.advance(seconds=29)
    assert await ledger.reconcile([], term=TERM) == LedgerDrift()
    clock.advance(seconds=1)
    assert len((await ledger.reconcile([], term=TERM)).released) == 1


async def test_writes_of_an_older_epoch_are_refused(ledger: Ledger) -> None:
    await ledger.charge(a_charge())
    await ledger.confirm([], term=TERM)
    old = LeaderTerm(leadership=TERM.leadership, epoch=TERM.epoch - 1)
    with pytest.raises(ConflictError):
        await ledger.confirm([gang_key("bert")], term=old)
    with pytest.raises(ConflictError):
        await ledger.release([gang_key("bert")], term=old)
    with pytest.raises(ConflictError):
        await ledger.expire(term=old)
    with pytest.raises(ConflictError):
        await ledger.reconcile([], term=old)
    assert (await ledger.charges())[0].expires_at is not None
    other = LeaderTerm(leadership="cellgate-webhook", epoch=1)
    assert await ledger.release([gang_key("bert")], term=other) == {gang_key("bert")}


async def test_no_limit_is_exceeded_by_charges_at_the_same_time(ledger: Ledger) -> None:
    limits = [at_most(10, Measure.LEAF_CELLS, VISION), at_most(3, Measure.GANGS)]
    answers = await asyncio.gather(
        *(
            ledger.charge(
                a_charge(f"g{number}", leaf_count=1, user=UserName(f"u{number % 5}")),
                limits=[limits[0], at_most(3, Measure.GANGS, Scope(UserName(f"u{number % 5}")))],
            )
            for number in range(40)
        )
    )
    assert sum(isinstance(answer, Charged) for answer in answers) == 10
    assert (await ledger.usage(VISION)).leaf_cells == 10


async def test_names_are_data(ledger: Ledger) -> None:
    strange = a_charge("';--", user=UserName('ü"\\u0000'), group=GroupName("a/b"))
    answer = await ledger.charge(strange)
    assert isinstance(answer, Charged)
    assert answer.live.charge == strange
    assert (await ledger.usage(Scope(None, GroupName("a/b")))).gangs == 1
