"""The past in Postgres: each call is one round trip.

The charges of a busy day are built in a thread: they take so long that reviews would wait.
"""

import asyncio
from datetime import datetime
from uuid import UUID

import asyncpg

from policy.past.gangs import HeldCharge
from policy.quotas.charge import Charge
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from state.database.database import backend_errors
from state.database.queries import sql
from state.past.past import StoredAdmission


class PostgresPast:
    """PastStore over the pool of an open, migrated database."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def admissions(self, *, since: datetime, until: datetime) -> list[StoredAdmission]:
        """Return the admissions from one moment until before another one, oldest first."""
        with backend_errors("reading admissions"):
            rows = await self._pool.fetch(sql("admissions_between"), since, until)
        return [StoredAdmission(**row) for row in rows]

    async def charges(self, *, since: datetime) -> list[HeldCharge]:
        """Return the charges that were in force at or after a moment, oldest first."""
        with backend_errors("reading charges"):
            rows = await self._pool.fetch(sql("charges_since"), since)
        return await asyncio.to_thread(lambda: [_to_held(row) for row in rows])


def _to_held(row: asyncpg.Record) -> HeldCharge:
    decision: UUID = row["decision"]
    charge = Charge(
        decision=decision,
        gang=GangKey.from_stored(row["namespace"], row["gang"]),
        user=UserName(row["user_name"]),
        group=GroupName(row["group_name"]) if row["group_name"] else None,
        vc=VcName(row["vc"]),
        class_name=ClassName(row["class"]),
        is_high=row["is_high"],
        leaf_type=LeafType(row["leaf_type"]) if row["leaf_type"] else None,
        leaf_count=row["leaf_count"],
        rises_to=ClassName(row["rises_to"]) if row["rises_to"] else None,
        cpu_millis=row["cpu_millis"] or 0,
        memory_bytes=row["memory_bytes"] or 0,
    )
    ended: datetime | None = row["ended_at"]
    return HeldCharge(
        charge=charge,
        since=row["charged_at"].timestamp(),
        until=None if ended is None else ended.timestamp(),
    )
