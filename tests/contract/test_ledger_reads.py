"""Questions to the ledger that change nothing: in memory and on both kinds of Postgres."""

from state.ledger.ledger import KnownGang, Ledger
from tests.support.clocks import FrozenTime
from tests.support.state.charges import ALICE, TERM, a_charge, gang_key


async def test_a_gang_of_which_nothing_is_known(ledger: Ledger) -> None:
    await ledger.charge(a_charge("other"))
    known = await ledger.find(gang_key("bert"), scope=ALICE)
    assert known == KnownGang(usage=await ledger.usage(ALICE))
    assert known.usage.leaf_cells == 4


async def test_a_charged_gang_is_found_with_its_charge(ledger: Ledger) -> None:
    charge = a_charge()
    await ledger.charge(charge)
    (live,) = await ledger.charges()
    assert await ledger.find(charge.gang, scope=ALICE) == KnownGang(
        live=live, usage=await ledger.usage(ALICE)
    )
    await ledger.confirm([charge.gang], term=TERM)
    known = await ledger.find(charge.gang, scope=ALICE)
    assert known.live is not None
    assert known.live.expires_at is None


async def test_a_gang_that_waits_is_found_until_it_is_forgotten(
    ledger: Ledger, clock: FrozenTime
) -> None:
    charge = a_charge()
    await ledger.queue(charge)
    known = await ledger.find(charge.gang, scope=ALICE)
    assert (known.live, known.queued) == (None, charge)
    clock.advance(seconds=11)
    assert (await ledger.find(charge.gang, scope=ALICE)).queued is None


async def test_a_question_keeps_no_charge_from_expiring(ledger: Ledger, clock: FrozenTime) -> None:
    charge = a_charge()
    await ledger.charge(charge)
    clock.advance(seconds=11)
    before = await ledger.usage(ALICE), await ledger.charges()
    known = await ledger.find(charge.gang, scope=ALICE)
    assert (known.live,) == before[1]
    assert (await ledger.usage(ALICE), await ledger.charges()) == before
    assert await ledger.expire(term=TERM) == (charge,)


async def test_names_that_no_database_can_store_are_only_unknown(ledger: Ledger) -> None:
    odd = a_charge(user="ali\x00ce", gang="b\x00")
    known = await ledger.find(odd.gang, scope=odd.scopes[0])
    assert (known.live, known.queued, known.usage.leaf_cells) == (None, None, 0)
