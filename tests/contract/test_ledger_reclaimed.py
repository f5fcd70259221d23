"""Since when gangs ask whose pods were ended for others: known for days after their charges end."""

from datetime import timedelta

import pytest

from policy.errors import ConflictError
from policy.submission import GangKey
from state.ledger.ledger import AGE_KEPT, LeaderTerm, Ledger
from tests.support.clocks import FrozenTime
from tests.support.state.charges import TERM, a_charge, gang_key

_OWNED = GangKey("team-a", "bert", "0b1c2d3e-0000-4000-8000-000000000001")
_OTHER_RUN = GangKey("team-a", "bert", "0b1c2d3e-0000-4000-8000-000000000002")
_HOUR = timedelta(hours=1)


async def test_the_age_of_a_gang_survives_the_end_of_its_charge(
    ledger: Ledger, clock: FrozenTime
) -> None:
    asked = clock() - _HOUR
    await ledger.charge(a_charge(_OWNED))
    await ledger.note_reclaimed({_OWNED: asked}, term=TERM)
    await ledger.release([_OWNED], term=TERM)
    await ledger.charge(a_charge(_OWNED))
    assert await ledger.first_asked([_OWNED, _OTHER_RUN, gang_key("bert")]) == {_OWNED: asked}


async def test_the_earliest_time_counts(ledger: Ledger, clock: FrozenTime) -> None:
    asked = clock() - _HOUR
    for one in (asked, clock(), asked + timedelta(minutes=1)):
        await ledger.note_reclaimed({_OWNED: one}, term=TERM)
    assert await ledger.first_asked([_OWNED]) == {_OWNED: asked}


async def test_an_age_is_forgotten_some_days_after_the_last_reclaim(
    ledger: Ledger, clock: FrozenTime
) -> None:
    first, almost = clock(), AGE_KEPT.total_seconds() - 1
    await ledger.note_reclaimed({_OWNED: first, _OTHER_RUN: first}, term=TERM)
    clock.advance(seconds=almost)
    await ledger.note_reclaimed({_OWNED: clock()}, term=TERM)
    clock.advance(seconds=almost)
    assert await ledger.first_asked([_OWNED, _OTHER_RUN]) == {_OWNED: first}
    clock.advance(seconds=1)
    assert await ledger.first_asked([_OWNED, _OTHER_RUN]) == {}
    await ledger.note_reclaimed({_OWNED: clock()}, term=TERM)
    assert await ledger.first_asked([_OWNED]) == {_OWNED: clock()}


async def test_nothing_to_note_and_nothing_to_ask(ledger: Ledger) -> None:
    await ledger.note_reclaimed({}, term=TERM)
    assert await ledger.first_asked([]) == {}


async def test_a_deposed_leader_notes_nothing(ledger: Ledger, clock: FrozenTime) -> None:
    await ledger.confirm([], term=LeaderTerm(leadership=TERM.leadership, epoch=TERM.epoch + 1))
    with pytest.raises(ConflictError):
        await ledger.note_reclaimed({_OWNED: clock()}, term=TERM)
    assert await ledger.first_asked([_OWNED]) == {}
