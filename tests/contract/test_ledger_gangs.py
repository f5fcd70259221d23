"""Gangs that wait, and gangs that grow: in memory and on both kinds of Postgres."""

import uuid
from dataclasses import replace

from policy.quotas.limits import Exceeded, Measure
from policy.quotas.usage import MICROS_PER_HOUR
from policy.submission import GangKey
from state.ledger.ledger import (
    Charged,
    Held,
    Ledger,
    LedgerDrift,
    Queued,
    Refused,
)
from tests.support.clocks import EVENING, FrozenTime
from tests.support.state.charges import ALICE, TERM, a_charge, at_most


async def test_a_gang_that_waits_has_one_decision_wherever_its_members_ask(ledger: Ledger) -> None:
    first, second = a_charge(), replace(a_charge(), decision=uuid.uuid4())
    assert await ledger.queue(first) == Queued(charge=first)
    assert await ledger.queue(second) == Queued(charge=first)
    assert await ledger.charge(second) == Queued(charge=first)
    assert await ledger.charges() == ()
    assert (await ledger.usage(ALICE)).leaf_cells == 0


async def test_a_gang_that_waits_is_charged_by_its_own_decision_only(ledger: Ledger) -> None:
    charge = a_charge()
    await ledger.queue(charge)
    assert isinstance(await ledger.charge(charge, limits=[at_most(0, Measure.LEAF_CELLS)]), Refused)
    other = replace(charge, decision=uuid.uuid4())
    assert await ledger.charge(other) == Queued(charge=charge)
    assert isinstance(await ledger.charge(charge), Charged)
    assert isinstance(await ledger.charge(other), Held)
    assert isinstance(await ledger.queue(other), Held)
    await ledger.release([charge.gang], term=TERM)
    assert isinstance(await ledger.charge(other), Charged)


async def test_a_gang_that_waits_is_forgotten_unless_its_pods_come(
    ledger: Ledger, clock: FrozenTime
) -> None:
    charge, other = a_charge(), replace(a_charge(), decision=uuid.uuid4())
    await ledger.queue(charge)
    clock.advance(seconds=11)
    assert await ledger.queue(other) == Queued(charge=other)
    await ledger.expire(term=TERM)
    assert await ledger.charge(charge) == Queued(charge=other)
    await ledger.release([charge.gang], term=TERM)
    assert isinstance(await ledger.charge(charge), Charged)


async def test_a_charged_gang_grows_within_its_limits(ledger: Ledger, clock: FrozenTime) -> None:
    charge = replace(a_charge(), leaf_count=3)
    await ledger.charge(charge)
    await ledger.confirm([charge.gang], term=TERM)
    clock.advance(minutes=30)
    limit = at_most(6, Measure.LEAF_CELLS)
    refused = await ledger.resize(charge, 7, limits=[limit])
    assert refused == Refused(exceeded=(Exceeded(limit=limit, used=0, asked=7),))
    grown = await ledger.resize(charge, 6, limits=[limit])
    assert isinstance(grown, Charged)
    assert grown.live.expires_at is None
    clock.advance(minutes=30)
    usage = await ledger.usage(ALICE)
    assert (usage.leaf_cells, usage.gangs) == (6, 1)
    today = EVENING.date()
    assert sum(day.leaf_micros for day in await ledger.days(today, today)) == usage.month_micros
    assert usage.month_micros == 4.5 * MICROS_PER_HOUR


async def test_who_grows_what_another_has_grown_looks_again(ledger: Ledger) -> None:
    charge = replace(a_charge(), leaf_count=3)
    await ledger.charge(charge)
    assert isinstance(await ledger.resize(charge, 6), Charged)
    again = await ledger.resize(charge, 6)
    assert isinstance(again, Held)
    assert again.live.charge.leaf_count == 6
    assert isinstance(await ledger.resize(again.live.charge, 9), Charged)
    assert (await ledger.usage(ALICE)).leaf_cells == 9


async def test_members_take_the_places_of_an_open_gang_and_then_let_it_grow(
    ledger: Ledger,
) -> None:
    charge = replace(a_charge(), leaf_count=4, places=1)
    await ledger.charge(charge)
    limit = at_most(6, Measure.LEAF_CELLS)
    placed = await ledger.join(charge, 2, limits=[limit])
    assert isinstance(placed, Charged)
    assert (placed.live.charge.leaf_count, placed.live.charge.places) == (4, 0)
    grown = await ledger.join(placed.live.charge, 2, limits=[limit])
    assert isinstance(grown, Charged)
    assert (grown.live.charge.leaf_count, grown.live.charge.places) == (6, 0)
    refused = await ledger.join(grown.live.charge, 2, limits=[limit])
    assert refused == Refused(exceeded=(Exceeded(limit=limit, used=0, asked=8),))
    # Whatever was seen of it: many members come at once.
    assert await ledger.join(charge, 2, limits=[limit]) == refused
    other = replace(charge, decision=uuid.uuid4())
    assert isinstance(await ledger.join(other, 2), Held)
    assert (await ledger.usage(ALICE)).leaf_cells == 6


async def test_late_members_take_the_leaf_cells_that_were_reserved_for_them(
    ledger: Ledger,
) -> None:
    charge = replace(a_charge(), leaf_count=17, places=14, gang_size=3, leaf_count_each=1)
    await ledger.charge(charge)
    limit = at_most(17, Measure.LEAF_CELLS)
    first = await ledger.join(charge, 7, limits=[limit])
    assert isinstance(first, Charged)
    assert (first.live.charge.leaf_count, first.live.charge.places) == (17, 7)
    assert isinstance(await ledger.join(first.live.charge, 8, limits=[limit]), Refused)
    second = await ledger.join(first.live.charge, 7, limits=[limit])
    assert isinstance(second, Charged)
    assert (second.live.charge.leaf_count, second.live.charge.places) == (17, 0)
    assert isinstance(await ledger.join(second.live.charge, 7, limits=[limit]), Refused)
    assert (await ledger.usage(ALICE)).leaf_cells == 17


async def test_what_the_leader_corrects_has_no_places_left(ledger: Ledger) -> None:
    charge = replace(a_charge(), leaf_count=4, places=3)
    await ledger.charge(charge)
    await ledger.reconcile([replace(charge, leaf_count=6)], term=TERM)
    (live,) = await ledger.charges()
    assert (live.charge.leaf_count, live.charge.places) == (6, 0)


async def test_a_gang_that_has_grown_since_it_was_seen_is_not_corrected(ledger: Ledger) -> None:
    charge = replace(a_charge(), leaf_count=4)
    await ledger.charge(charge)
    seen = await ledger.charges()
    await ledger.resize(charge, 6)
    fewer = replace(charge, leaf_count=3)
    assert await ledger.reconcile([fewer], term=TERM, seen=seen) == LedgerDrift()
    assert (await ledger.usage(ALICE)).leaf_cells == 6
    seen = await ledger.charges()
    assert (await ledger.reconcile([fewer], term=TERM, seen=seen)).created == (fewer,)


async def test_gangs_that_are_charged_are_found_among_others(ledger: Ledger) -> None:
    charged, waiting, gone = a_charge("a"), a_charge("b"), a_charge("c")
    await ledger.charge(charged)
    await ledger.queue(waiting)
    await ledger.charge(gone)
    await ledger.release([gone.gang], term=TERM)
    gangs = [one.gang for one in (charged, waiting, gone)]
    assert await ledger.find_charged(gangs) == {charged.gang}
    assert await ledger.find_charged([]) == frozenset()


async def test_a_charge_that_was_too_large_shrinks_and_has_no_places_left(ledger: Ledger) -> None:
    charge = replace(a_charge(), leaf_count=9, places=2)
    await ledger.charge(charge)
    shrunk = await ledger.resize(charge, 3)
    assert isinstance(shrunk, Charged)
    assert shrunk.live.charge == replace(charge, leaf_count=3)
    assert (await ledger.usage(ALICE)).leaf_cells == 3
    (live,) = await ledger.charges()
    assert live.charge.places == 0


async def test_charges_are_found_by_when_they_were_made_or_resized(
    ledger: Ledger, clock: FrozenTime
) -> None:
    first, second = a_charge("a"), a_charge("b")
    await ledger.charge(first)
    clock.advance(seconds=10)
    await ledger.charge(second)

    async def aged(least_seconds: float, most_seconds: float) -> list[str]:
        found = await ledger.charges_aged(least_seconds=least_seconds, most_seconds=most_seconds)
        return [live.charge.gang.name for live in found]

    assert await aged(0, 5) == ["b"]
    assert await aged(0, 10) == ["b"]
    assert await aged(10, 11) == ["a"]
    await ledger.resize(first, 9)
    assert await aged(0, 5) == ["a", "b"]


async def test_runs_with_the_same_name_are_charged_apart(ledger: Ledger) -> None:
    """Also beside a run that was charged before gangs had owners."""
    owners = ("", str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))
    keys = [GangKey("team-a", "bert", owner) for owner in owners]
    for key in keys:
        assert isinstance(await ledger.charge(a_charge(key)), Charged)
    assert [live.charge.gang for live in await ledger.charges()] == keys
    assert (await ledger.usage(ALICE)).leaf_cells == 12
    assert await ledger.confirm(keys[:2], term=TERM) == frozenset(keys[:2])
    assert await ledger.release([keys[1]], term=TERM) == frozenset([keys[1]])
    assert await ledger.find_charged(keys) == frozenset([keys[0], keys[2]])
