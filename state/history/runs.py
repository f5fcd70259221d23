"""Queries about the history of gangs, in Postgres.

Administrators can also query the views `leaf_cell_hours`, `waiting_times` and `preemptions`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Protocol

import asyncpg
import orjson

from state.database.column_values import to_optional_text, to_text
from state.database.database import backend_errors
from state.database.queries import sql
from state.database.retention import RetentionSettings
from state.history.facts import Certainty, GangFacts, decode_facts
from state.history.predictions import PastRun, PredictionError

_COLUMNS: Final = [one.name for one in fields(GangFacts)]
_JSON_COLUMNS: Final = ("labels", "members", "predictions")
KEEP_DAYS: Final = RetentionSettings().history_days
"""How long runs are kept after their end, unless an admin says otherwise."""
_AT_ONCE: Final = 50
"""Runs that are decoded in one piece: some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The leaf-cell-hours of one user and group in one VC, class and leaf type."""

    user_name: str | None
    group_name: str | None
    vc: str | None
    class_name: str | None
    leaf_type: str | None
    leaf_cell_hours: float
    gangs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; None restricts nothing."""

    user_name: str | None = None
    group_name: str | None = None
    vc: str | None = None
    gang: str | None = None
    outcome: str | None = None
    has_ended: bool | None = None
    since: datetime | None = None
    """Runs that had not ended before."""
    until: datetime | None = None
    """Runs that were submitted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPosition:
    """A run in the order of pages: by submission."""

    asked_at: datetime
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run of the history, with what follows from all that is stored."""

    facts: GangFacts
    attempt: int
    """Numbers the runs of one gang of one workload, from 1."""
    leaf_cell_hours: float
    """What it has used so far."""

    @property
    def position(self) -> RunPosition:
        """Where the next page begins."""
        assert self.facts.asked_at is not None, "a run is recorded with its submission"
        return RunPosition(asked_at=self.facts.asked_at, run=self.facts.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPod:
    """A pod in the history."""

    certainty: Certainty
    """How well its end is known."""
    has_run_ended: bool
    told: str | None = None
    """Why Cellgate ended it, if it did."""
    extent: str = ""
    """The extent of its run."""


class RunHistory(Protocol):
    """What the extender reads of the history: `PostgresHistory`, or its twin in memory."""

    @property
    def keep_days(self) -> int:
        """How long runs are kept after their end."""

    async def find(
        self, wanted: RunFilter, limit: int, *, before: RunPosition | None = None
    ) -> list[StoredRun]:
        """Return runs, the newest first."""

    async def open_runs(self, limit: int, *, after: str = "") -> list[GangFacts]:
        """Return runs that have not ended, sorted by name, after a name."""

    async def recorded(self, pod_uids: Sequence[str]) -> Mapping[str, RecordedPod]:
        """Return the pods, among those given, that are recorded."""

    async def hours_between(
        self,
        since: datetime,
        until: datetime,
        *,
        user_name: str | None = None,
        group_name: str | None = None,
    ) -> list[Hours]:
        """Sum the leaf-cell-hours between two moments, and count the gangs that ran then.

        Of one user or group, if they are given.
        """

    async def past_runs(self, limit: int, *, before: PastRun | None = None) -> list[PastRun]:
        """Return runs that had begun and have ended, the last end first, before another one."""

    async def prediction_errors(
        self, since: datetime, until: datetime, *, user_name: str | None = None
    ) -> list[PredictionError]:
        """Compare predictions with outcomes that came between two moments."""


class PostgresHistory:
    """Queries over the table `gang_history`. Raises BackendError if Postgres does not answer."""

    def __init__(self, pool: asyncpg.Pool, *, keep_days: int = KEEP_DAYS) -> None:
        self._pool = pool
        self.keep_days = keep_days

    async def find(
        self, wanted: RunFilter, limit: int, *, before: RunPosition | None = None
    ) -> list[StoredRun]:
        """Return runs, the newest first."""
        names = (wanted.user_name, wanted.group_name, wanted.vc, wanted.gang, wanted.outcome)
        position = (before.asked_at, to_text(before.run)) if before else (None, None)
        rows = await self._ask(
            "find_runs",
            *map(to_optional_text, names),
            wanted.has_ended,
            wanted.since,
            wanted.until,
            *position,
            limit,
        )
        return [
            StoredRun(
                facts=facts,
                attempt=row["attempt"],
                leaf_cell_hours=row["leaf_cell_hours"] or 0.0,
            )
            for row, facts in zip(rows, await _decode(rows), strict=True)
        ]

    async def open_runs(self, limit: int, *, after: str = "") -> list[GangFacts]:
        """Return runs that have not ended, sorted by name, after a name."""
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql("open_runs"), to_text(after), limit)
        return await _decode(rows)

    async def recorded(self, pod_uids: Sequence[str]) -> Mapping[str, RecordedPod]:
        """Return the pods, among those given, that are recorded."""
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql("recorded_pods"), list(map(to_text, pod_uids)))
        return {
            row["pod_uid"]: RecordedPod(
                certainty=Certainty(row["certainty"] or 0),
                has_run_ended=row["has_ended"],
                told=row["told"],
                extent=row["extent"],
            )
            for row in rows
        }

    async def hours_between(
        self,
        since: datetime,
        until: datetime,
        *,
        user_name: str | None = None,
        group_name: str | None = None,
    ) -> list[Hours]:
        """Sum the leaf-cell-hours between two moments, and count the gangs that ran then.

        Whole UTC days are read from daily sums; of the other hours every run is read.
        """
        whose = map(to_optional_text, (user_name, group_name))
        rows = await self._ask("hours_between", since, until, *whose)
        return [
            Hours(
                user_name=row["user_name"],
                group_name=row["group_name"],
                vc=row["vc"],
                class_name=row["class"],
                leaf_type=row["leaf_type"],
                leaf_cell_hours=row["leaf_cell_hours"],
                gangs=row["gangs"],
            )
            for row in rows
        ]

    async def past_runs(self, limit: int, *, before: PastRun | None = None) -> list[PastRun]:
        """Return runs that had begun and have ended, the last end first, before another one."""
        position = (before.ended_at, before.run) if before else (None, None)
        with backend_errors("reading history"):
            rows = await self._pool.fetch(sql("past_runs"), *position, limit)
        return [
            PastRun(**{**row, "start": orjson.loads(row["start"]) if row["start"] else None})
            for row in rows
        ]

    async def prediction_errors(
        self, since: datetime, until: datetime, *, user_name: str | None = None
    ) -> list[PredictionError]:
        """Compare predictions with outcomes that came between two moments."""
        rows = await self._ask("prediction_errors", since, until, to_optional_text(user_name))
        return [PredictionError(**row) for row in rows]

    async def _ask(self, name: str, *values: Any) -> list[asyncpg.Record]:  # noqa: ANN401
        """Read by a plan for these values: one for all would read whole tables for one user."""
        with backend_errors("reading history"):
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.fetchval(sql("plan_by_values"))
                found: list[asyncpg.Record] = await connection.fetch(sql(name), *values)
                return found


async def _decode(rows: Sequence[asyncpg.Record]) -> list[GangFacts]:
    """Decode runs in pieces: others wait meanwhile, such as kube-scheduler."""
    found: list[GangFacts] = []
    for first in range(0, len(rows), _AT_ONCE):
        found += map(_facts, rows[first : first + _AT_ONCE])
        await asyncio.sleep(0)
    return found


def _facts(row: asyncpg.Record) -> GangFacts:
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    for name in _JSON_COLUMNS:
        values[name] = orjson.loads(values[name])
    return decode_facts(values)
