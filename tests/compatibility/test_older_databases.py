"""The database of an earlier commit: it is migrated, and all questions have the same answers."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from policy.errors import ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.submission import ClassName, GangKey, GroupName, UserName, VcName
from state.database.database import Database, open_database
from state.database.migrator import load_migrations, migrate
from state.history.runs import PostgresHistory, RunFilter
from state.ledger.ledger import Charged, LeaderTerm, Queued
from tests.compatibility.written import Written
from tests.support.state.ledgers import a_patient_ledger

_LEADERSHIP = "cellgate-extender"


def test_migrations_that_were_applied_are_unchanged(written: Written) -> None:
    now = {migration.name: migration.checksum for migration in load_migrations()}
    assert {name: now.get(name) for name in written.migrations} == written.migrations


async def test_only_later_migrations_are_applied(empty_database_url: str, written: Written) -> None:
    async with open_database(empty_database_url, application_name="tests") as database:
        await written.restore(database.pool)
        later = [one.name for one in load_migrations() if one.name not in written.migrations]
        assert await migrate(database.pool) == later
        assert await migrate(database.pool) == []


async def test_usage_is_what_it_was(older_database: Database, written: Written) -> None:
    ledger = a_patient_ledger(older_database.pool)
    found = {}
    for name in written.answers["usage"]:
        user, group = name.split("/")
        usage = await ledger.usage(
            Scope(UserName(user) if user else None, GroupName(group) if group else None)
        )
        found[name] = {
            "leafCells": usage.leaf_cells,
            "leafCellsHigh": usage.leaf_cells_high,
            "gangs": usage.gangs,
            "byLeafType": dict(usage.by_leaf_type),
        }
    assert found == written.answers["usage"]


async def test_charges_are_what_they_were(older_database: Database, written: Written) -> None:
    live = await a_patient_ledger(older_database.pool).charges()
    assert [
        {
            "gang": str(one.charge.gang),
            "decision": str(one.charge.decision),
            "user": one.charge.user,
            "group": one.charge.group,
            "vc": one.charge.vc,
            "class": one.charge.class_name,
            "high": one.charge.is_high,
            "leafType": one.charge.leaf_type,
            "leafCount": one.charge.leaf_count,
            "confirmed": one.expires_at is None,
        }
        for one in live
    ] == written.answers["charges"]


async def test_holdings_of_the_past_are_what_they_were(
    older_database: Database, written: Written
) -> None:
    asked = written.answers["holdings"]
    held = await a_patient_ledger(older_database.pool).holdings(datetime.fromisoformat(asked["at"]))
    assert [
        {
            "user": one.user,
            "group": one.group,
            "vc": one.vc,
            "class": one.class_name,
            "high": one.is_high,
            "leafType": one.leaf_type,
            "leafCells": one.leaf_cells,
            "gangs": one.gangs,
        }
        for one in held
    ] == asked["held"]


async def test_an_older_charge_is_recognised_and_released(
    older_database: Database, written: Written
) -> None:
    ledger = a_patient_ledger(older_database.pool)
    for told in written.answers["charges"]:
        charge = _to_charge(told)
        answer = await ledger.charge(charge)
        assert isinstance(answer, Charged)
        assert answer.live.charge == charge
    gangs = [_to_charge(told).gang for told in written.answers["charges"]]
    [leadership] = written.tables["leaderships"]
    with pytest.raises(ConflictError):
        await ledger.release(gangs, term=_term(leadership["epoch"] - 1))
    assert await ledger.release(gangs, term=_term(leadership["epoch"] + 1)) == frozenset(gangs)
    assert await ledger.charges() == ()
    assert (await ledger.usage(Scope(UserName("dave")))).leaf_cells == 0


def _to_charge(told: dict[str, Any]) -> Charge:
    return Charge(
        decision=UUID(told["decision"]),
        gang=GangKey(*told["gang"].split("/", 1)),
        user=UserName(told["user"]),
        group=GroupName(told["group"]),
        vc=VcName(told["vc"]),
        class_name=ClassName(told["class"]),
        is_high=told["high"],
        leaf_type=told["leafType"],
        leaf_count=told["leafCount"],
    )


def _term(epoch: int) -> LeaderTerm:
    return LeaderTerm(leadership=_LEADERSHIP, epoch=epoch)


async def test_a_gang_that_waits_for_quota_keeps_its_decision(
    older_database: Database, written: Written
) -> None:
    [row] = written.tables["queued_gangs"]
    told = row["charge"]
    queued = Charge(
        decision=UUID(told["decision"]),
        gang=GangKey(row["namespace"], row["gang"]),
        user=UserName(told["user_name"]),
        group=GroupName(told["group_name"]),
        vc=VcName(told["vc"]),
        class_name=ClassName(told["class"]),
        is_high=told["is_high"],
        leaf_count=told["leaf_count"],
    )
    # It is forgotten a day after it was confirmed: that day is over.
    later = "UPDATE queued_gangs SET expires_at = now() + interval '1 hour'"
    await older_database.pool.execute(later)
    ledger = a_patient_ledger(older_database.pool)
    assert await ledger.queue(replace(queued, decision=uuid4())) == Queued(charge=queued)
    answer = await ledger.charge(queued)
    assert isinstance(answer, Charged)
    assert answer.live.charge == queued


async def test_the_history_of_gangs_is_what_it_was(
    older_database: Database, written: Written
) -> None:
    history = PostgresHistory(older_database.pool)
    for user, expected in written.answers["runs"].items():
        assert [
            {
                "run": run.run,
                "gang": run.gang,
                "nodes": list(run.nodes),
                "outcome": run.outcome,
                "leafCount": run.leaf_count,
                "grantedClass": run.granted_class,
                "preemptedFor": run.preempted_for,
                "endedAt": run.ended_at and run.ended_at.isoformat(),
            }
            for run in (one.facts for one in await history.find(RunFilter(user_name=user), 10))
        ] == expected


async def test_hours_of_the_past_are_what_they_were(
    older_database: Database, written: Written
) -> None:
    asked = written.answers["hours"]
    hours = await PostgresHistory(older_database.pool).hours_between(
        datetime.fromisoformat(asked["since"]), datetime.fromisoformat(asked["until"])
    )
    assert [
        {
            "user": one.user_name,
            "group": one.group_name,
            "vc": one.vc,
            "class": one.class_name,
            "hours": round(one.leaf_cell_hours, 6),
            "gangs": one.gangs,
        }
        for one in hours
    ] == asked["used"]
