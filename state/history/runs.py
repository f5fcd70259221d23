"""Queries about the history of gangs, in Postgres.

Administrators can also query the views `leaf_cell_hours`, `waiting_times` and `preemptions`.
"""

from dataclasses import dataclass
from datetime import date, datetime

import asyncpg

from state.database.column_values import to_text
from state.database.database import backend_errors
from state.database.queries import sql
from state.history.facts import GangFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The leaf-cell-hours of one user and group in one VC and class."""

    user_name: str | None
    group_name: str | None
    vc: str | None
    class_name: str | None
    leaf_cell_hours: float
    gangs: int


class PostgresHistory:
    """Queries over the table `gang_history`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def of_user(self, user_name: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one user's gangs, newest first."""
        return await self._runs("my_last_jobs", user_name, limit)

    async def of_gang(self, gang: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one gang, newest first."""
        return await self._runs("runs_of_gang", gang, limit)

    async def hours_of_days(self, first: date, last: date) -> list[Hours]:
        """Sum the leaf-cell-hours of whole UTC days; a running gang counts until now.

        `gangs` counts the gangs that ended on these days or still run.
        """
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql("hours_of_days"), first, last)
        return [_hours(row) for row in rows]

    async def hours_between(self, since: datetime, until: datetime) -> list[Hours]:
        """Sum the leaf-cell-hours between two moments, and count the gangs that ran then.

        Reads every such run: takes seconds for a million runs.
        """
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql("hours_between"), since, until)
        return [_hours(row) for row in rows]

    async def _runs(self, query: str, value: str, limit: int) -> list[GangFacts]:
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql(query), to_text(value), limit)
        return [GangFacts(**{**row, "nodes": tuple(row["nodes"])}) for row in rows]


def _hours(row: asyncpg.Record) -> Hours:
    return Hours(
        user_name=row["user_name"],
        group_name=row["group_name"],
        vc=row["vc"],
        class_name=row["class"],
        leaf_cell_hours=row["leaf_cell_hours"] or 0.0,
        gangs=row["gangs"],
    )
