"""The outlook in Postgres: each call is one round trip."""

from dataclasses import asdict

import asyncpg
import orjson

from state.database.column_values import to_json
from state.database.database import leader_calls
from state.database.queries import sql
from state.ledger.ledger import LeaderTerm
from state.outlook.outlook import Outlook, OutlookEntry


class PostgresOutlook:
    """OutlookStore over the pool of an open, migrated database."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def save(self, outlook: Outlook, *, term: LeaderTerm) -> None:
        """Replace the outlook."""
        texts = [to_json(asdict(entry)) for entry in outlook.entries]
        async with leader_calls("writing the outlook"):
            await self._pool.fetchval(
                sql("save_outlook"),
                term.leadership,
                term.epoch,
                outlook.computed_at,
                "[" + ",".join(texts) + "]",
            )

    async def load(self) -> Outlook | None:
        """Return the last outlook; entries of another version are left out."""
        async with leader_calls("reading the outlook"):
            row = await self._pool.fetchrow(sql("outlook"))
        if row is None:
            return None
        found = (_entry(one) for one in orjson.loads(row["entries"]))
        return Outlook(
            computed_at=row["computed_at"], entries=[one for one in found if one is not None]
        )


def _entry(body: dict[str, object]) -> OutlookEntry | None:
    try:
        return OutlookEntry(**body)  # type: ignore[arg-type]
    except TypeError:
        return None
