"""The decision log's rows in Postgres."""

from collections.abc import Sequence
from typing import Any

import asyncpg
import orjson

from state.database import backend_errors
from state.log import DecisionRecord
from state.queries import sql
from state.storable import to_json, to_optional_text, to_text

# Postgres will say the same about these rows tomorrow: bad data, a broken constraint, too large.
_REFUSED_CLASSES = ("22", "23", "54")


class PostgresDecisions:
    """A DecisionStore over the table `decisions`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def insert(self, records: Sequence[DecisionRecord]) -> None:
        """Store all records with one statement, or none."""
        columns = zip(*map(_to_row, records), strict=True)
        with backend_errors("writing decisions"):
            try:
                await self._pool.execute(sql("insert_decisions"), *map(list, columns))
            except ValueError as error:  # asyncpg's, about a value it cannot send
                raise ValueError(str(error)) from error
            except asyncpg.PostgresError as error:
                if (error.sqlstate or "").startswith(_REFUSED_CLASSES):
                    raise ValueError(str(error)) from error
                raise

    async def recent(self, limit: int, *, subject: str | None = None) -> list[DecisionRecord]:
        """Return the newest records, newest first."""
        with backend_errors("reading decisions"):
            if subject is None:
                rows = await self._pool.fetch(sql("recent_decisions"), limit)
            else:
                query = sql("recent_decisions_of_subject")
                rows = await self._pool.fetch(query, limit, to_text(subject))
        return [_from_row(row) for row in rows]


def _to_row(record: DecisionRecord) -> tuple[Any, ...]:
    """Return the values in the order of the query `insert_decisions`."""
    return (
        record.key,
        record.at,
        to_text(record.service),
        to_text(record.kind),
        to_text(record.subject),
        to_optional_text(record.pod_uid),
        to_text(record.outcome),
        to_text(record.reason),
        to_optional_text(record.policy_version),
        record.latency_seconds,
        to_json(record.details),
    )


def _from_row(row: asyncpg.Record) -> DecisionRecord:
    return DecisionRecord(**{**row, "details": orjson.loads(row["details"])})
