"""The ledger in Postgres under adversity: deadlines, writers across each other, lost rows."""

import asyncio
import random
import time
import uuid
from dataclasses import replace

import pytest

from policy.errors import BackendError
from policy.quotas.charge import Charge
from policy.quotas.limits import Measure, Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import GangKey, GroupName, UserName
from state.database.database import Database
from state.ledger.ledger import Charged, Held, LeaderTerm
from state.ledger.postgres import LedgerSettings, PostgresLedger
from tests.support.clocks import FrozenTime
from tests.support.state.charges import ALICE, TERM, VISION, a_charge, at_most, gang_key
from tests.support.state.ledgers import a_patient_ledger

_SUMS = """
    SELECT sum(leaf_count) FROM holdings WHERE group_name = ''
    UNION ALL SELECT sum(leaf_count) FROM charges
"""
_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


async def test_a_charge_that_must_wait_too_long_is_not_known(database: Database) -> None:
    ledger = PostgresLedger(database.pool, LedgerSettings(charge_timeout_seconds=0.3))
    await ledger.charge(a_charge("first"))
    async with database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM holdings FOR UPDATE")
        began = time.monotonic()
        with pytest.raises(BackendError, match="charging a gang: it did not answer in time"):
            await ledger.charge(a_charge("second"))
        assert time.monotonic() - began < 5
    await ledger.aclose()
    assert isinstance(await ledger.charge(a_charge("third")), Charged)
    assert (await ledger.usage(ALICE)).gangs == len(await ledger.charges())


async def test_writers_across_each_other_neither_deadlock_nor_lose_anything(
    database: Database,
) -> None:
    settings = LedgerSettings(charge_timeout_seconds=30, batch_size=4)
    ledgers = [PostgresLedger(database.pool, settings) for _ in range(3)]
    leader = ledgers[0]
    choose = random.Random(5)

    async def charge(ledger: PostgresLedger, number: int) -> None:
        one = a_charge(
            f"g{choose.randrange(60)}",
            user=UserName(f"u{choose.randrange(6)}"),
            group=choose.choice([None, GroupName("vision"), GroupName("nlp")]),
            leaf_count=choose.randrange(5),
        )
        await ledger.charge(one, limits=[at_most(50, Measure.LEAF_CELLS, VISION)])
        if number % 10 == 0:
            await leader.release(
                [gang_key(f"g{choose.randrange(60)}") for _ in range(8)], term=TERM
            )
        if number % 50 == 0:
            others = [
                a_charge(f"g{n}", user=UserName(f"u{choose.randrange(9)}")) for n in range(10)
            ]
            await leader.reconcile(others, term=TERM, grace_seconds=0)

    await asyncio.gather(*(charge(ledgers[number % 3], number) for number in range(300)))
    of_users, of_charges = [row[0] for row in await database.pool.fetch(_SUMS)]
    assert of_users == of_charges
    assert await database.pool.fetchval(_DEADLOCKS) == 0


async def test_two_replicas_that_charge_one_gang_at_once_agree(database: Database) -> None:
    ledgers = [a_patient_ledger(database.pool) for _ in range(2)]
    for number in range(20):
        charges = [
            a_charge(f"g{number}", user=UserName(user), group=None) for user in ("alice", "bob")
        ]
        answers = await asyncio.gather(
            *(ledger.charge(one) for ledger, one in zip(ledgers, charges, strict=True))
        )
        first, second = (answer.live for answer in answers if isinstance(answer, Charged | Held))
        assert first == second
    users = [await ledgers[0].usage(Scope(UserName(user))) for user in ("alice", "bob")]
    assert sum(usage.gangs for usage in users) == 20


async def test_replicas_that_charge_the_same_gangs_crosswise_wait_in_no_ring(
    database: Database,
) -> None:
    settings = LedgerSettings(charge_timeout_seconds=30, lanes=1)
    for number in range(10):
        ledgers = [PostgresLedger(database.pool, settings) for _ in range(2)]
        gangs = [f"g{number}-{index}" for index in range(40)]
        answers = await asyncio.gather(
            *(ledgers[0].charge(a_charge(gang, group=None)) for gang in gangs),
            *(
                ledgers[1].charge(a_charge(gang, user=UserName("bob"), group=None))
                for gang in reversed(gangs)
            ),
        )
        assert sum(isinstance(answer, Charged) for answer in answers) == 40
    assert await database.pool.fetchval(_DEADLOCKS) == 0


async def test_a_charge_does_not_wait_for_a_leader_that_confirms_it(database: Database) -> None:
    """The leader may want the sums that the charge holds: one of the two must not wait."""
    clock = FrozenTime()
    ledger = PostgresLedger(database.pool, LedgerSettings(charge_timeout_seconds=5), clock=clock)
    first = await ledger.charge(a_charge())
    assert isinstance(first, Charged)
    clock.advance(seconds=30)
    async with database.pool.acquire() as leader, leader.transaction():
        await leader.execute("UPDATE charges SET expires_at = NULL")
        assert await ledger.charge(first.live.charge) == replace(
            first, usage=tuple(await _usages(ledger, first.live.charge))
        )
    assert await ledger.expire(term=TERM) == ()


async def _usages(ledger: PostgresLedger, charge: Charge) -> list[ScopeUsage]:
    return [await ledger.usage(scope) for scope in charge.scopes]


async def test_a_lost_race_is_run_again(database: Database) -> None:
    await database.pool.execute(
        """
        CREATE SEQUENCE attempts;
        CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('attempts') < 3 THEN
                RAISE EXCEPTION 'lost' USING ERRCODE = 'deadlock_detected';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER lose BEFORE INSERT ON charges FOR EACH ROW EXECUTE FUNCTION lose();
        """
    )
    assert isinstance(await a_patient_ledger(database.pool).charge(a_charge()), Charged)
    assert await database.pool.fetchval("SELECT last_value FROM attempts") == 3


async def test_many_gangs_are_reconciled_at_once(database: Database) -> None:
    ledger = a_patient_ledger(database.pool)
    gangs = [
        a_charge(f"g{number}", user=UserName(f"u{number % 50}"), decision=uuid.uuid4())
        for number in range(1000)
    ]
    assert len((await ledger.reconcile(gangs, term=TERM)).created) == 1000
    began = time.monotonic()
    assert (await ledger.reconcile(gangs, term=TERM)).created == ()
    assert time.monotonic() - began < 5
    assert len(await ledger.release([gang.gang for gang in gangs], term=TERM)) == 1000
    assert (await ledger.usage(VISION)).leaf_cells == 0


async def test_a_refused_charge_leaves_no_trace_but_rows_of_zeros(database: Database) -> None:
    ledger = a_patient_ledger(database.pool)
    await ledger.charge(a_charge(), limits=[at_most(3, Measure.LEAF_CELLS)])
    assert await database.pool.fetch("SELECT FROM charges UNION ALL SELECT FROM past_charges") == []
    assert await database.pool.fetchval("SELECT sum(leaf_count + gang_count) FROM holdings") == 0


async def test_a_new_epoch_is_remembered_by_the_database(database: Database) -> None:
    ledger = a_patient_ledger(database.pool)
    await ledger.release([GangKey("n", "g")], term=LeaderTerm(leadership="x", epoch=2**40))
    assert await database.pool.fetchval("SELECT epoch FROM leaderships") == 2**40
