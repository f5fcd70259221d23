"""The promise ledger in Postgres: each call is one round trip."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg
import orjson

from policy.submission import GangKey
from state.database.column_values import to_json, to_text
from state.database.database import leader_calls
from state.database.queries import sql
from state.ledger.ledger import LeaderTerm
from state.promises.promises import PromiseRow

_KEPT: Final = timedelta(days=90)
"""How long promises that ended are kept."""
_MOST_ROWS: Final = 5_000


class PostgresPromises:
    """PromiseStore over the pool of an open, migrated database."""

    def __init__(
        self, pool: asyncpg.Pool, *, clock: Callable[[], datetime | None] = lambda: None
    ) -> None:
        """Use the clock of the database unless a test passes its own."""
        self._pool = pool
        self._now = clock

    async def save(self, rows: Sequence[PromiseRow], *, term: LeaderTerm) -> None:
        """Write promises that were made or have changed."""
        texts = [
            to_json(
                {
                    "namespace": to_text(row.gang.namespace),
                    "gang": to_text(row.gang.name),
                    "owner": to_text(row.gang.owner),
                    "made_at": row.made_at.isoformat(),
                    "ended_at": row.ended_at.isoformat() if row.ended_at else None,
                    "body": dict(row.body),
                }
            )
            for row in rows
        ]
        async with leader_calls("writing promises"):
            await self._pool.fetchval(
                sql("save_promises"),
                term.leadership,
                term.epoch,
                "[" + ",".join(texts) + "]",
                _KEPT,
                self._now(),
            )

    async def load(self, *, ended_since: datetime) -> list[PromiseRow]:
        """Return the promises that are in force and those that ended since, oldest first."""
        async with leader_calls("reading promises"):
            rows = await self._pool.fetch(sql("promises"), ended_since, _MOST_ROWS)
        return [
            PromiseRow(
                gang=GangKey(row["namespace"], row["gang"], row["owner"]),
                made_at=row["made_at"],
                ended_at=row["ended_at"],
                body=orjson.loads(row["body"]),
            )
            for row in reversed(rows)
        ]
