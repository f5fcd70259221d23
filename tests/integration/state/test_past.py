"""The past as a policy is tried on it, on a real database: what was asked for, what was held."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from policy.past.effect import find_effect
from policy.past.gangs import HeldCharge, read_day
from policy.policy import restore
from policy.submission import ClassName
from state.database.database import Database
from state.log.postgres import PostgresDecisions
from state.past.postgres import PostgresPast
from tests.support.clocks import EVENING, FrozenTime
from tests.support.state.charges import TERM, a_charge
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.records import a_decision
from tests.support.webhook.logged_admissions import LoggedAdmissions, the_policies


async def test_admissions_are_read_from_one_moment_until_before_another(database: Database) -> None:
    def a_row(subject: str, minutes: int, **fields: Any) -> Any:
        return a_decision(subject, at=EVENING + timedelta(minutes=minutes), **fields)

    details, inputs = {"user": "älice"}, {"wording": 1, "usage": [1, 0]}
    first = a_row("lab/first", 0, details=details, inputs=inputs)
    rows = [
        a_row("lab/second", 5),
        first,
        a_row("lab/end", 10),
        a_row("lab/hold", 1, kind="hold"),
        a_row("lab/raised", 1, service="extender", outcome="raised"),
    ]
    await PostgresDecisions(database.pool).insert(rows)
    past = PostgresPast(database.pool)
    until = EVENING + timedelta(minutes=10)
    found = await past.admissions(since=EVENING, until=until)
    assert [one.subject for one in found] == ["lab/first", "lab/second"]
    read = found[0].read()
    assert (found[0].key, read.at, read.outcome) == (first.key, EVENING.timestamp(), first.outcome)
    assert (read.details, read.inputs) == (details, inputs)


async def test_charges_are_read_with_their_times_also_those_that_ended(database: Database) -> None:
    clock = FrozenTime()
    ledger, past = a_patient_ledger(database.pool, clock=clock), PostgresPast(database.pool)
    began = clock()
    before, ended = a_charge("before", group=None), a_charge("ended", leaf_type=None)
    live = a_charge("live", rises_to=ClassName("prod"), cpu_millis=4000, memory_bytes=2**33)
    for charge in (before, ended, live):
        await ledger.charge(charge)
    await ledger.confirm([one.gang for one in (before, ended, live)], term=TERM)
    clock.advance(minutes=1)
    await ledger.release([before.gang], term=TERM)
    clock.advance(minutes=9)
    await ledger.release([ended.gang], term=TERM)
    found = {
        one.charge.gang.name: one for one in await past.charges(since=began + timedelta(minutes=5))
    }
    assert found.keys() == {"ended", "live"}
    at = began.timestamp()
    assert found["ended"] == HeldCharge(
        charge=replace(ended, cpu_millis=0), since=at, until=at + 600.0
    )
    assert (found["live"].since, found["live"].until) == (at, None)
    charge = found["live"].charge
    assert (charge, charge.rises_to, charge.cpu_millis) == (live, "prod", 4000)


async def test_a_logged_day_is_played_and_its_own_policy_changes_nothing(
    database: Database,
) -> None:
    store = await LoggedAdmissions().run(120)
    documents = [store.documents[one] for one in store.records[0].document_hashes]
    await PostgresDecisions(database.pool).insert(
        [replace(one, key=uuid4()) for one in store.records]
    )
    rows = await PostgresPast(database.pool).admissions(
        since=EVENING, until=EVENING + timedelta(days=2)
    )
    first, later = the_policies()
    assert restore(documents[0].content).version == first.version
    day = read_day(
        (row.read() for row in rows),
        (),
        policy=first,
        since=EVENING.timestamp(),
        until=store.records[-1].at.timestamp(),
    )
    assert len(day.gangs) > 60
    same = find_effect(day, before=first, after=first)
    assert same is not None
    assert same.is_none
    other = find_effect(day, before=first, after=later)
    assert other is not None
    assert other.lowered
