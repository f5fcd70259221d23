"""The nodes that were seen lately, in Postgres: each call is one round trip."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg
import orjson

from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.seen_nodes import SEEN_DAYS
from policy.submission import NodeName
from state.database.column_values import to_json, to_text
from state.database.database import leader_calls
from state.database.queries import sql
from state.ledger.ledger import LeaderTerm

_KEPT: Final = timedelta(days=SEEN_DAYS)


class PostgresSeenNodes:
    """SeenNodes over the pool of an open, migrated database."""

    def __init__(
        self, pool: asyncpg.Pool, *, clock: Callable[[], datetime | None] = lambda: None
    ) -> None:
        """Use the clock of the database unless a test passes its own."""
        self._pool = pool
        self._now = clock

    async def observe(
        self, nodes: Sequence[LiveNode], *, gone: Sequence[NodeName], term: LeaderTerm
    ) -> None:
        """Note nodes that joined or changed, and nodes that are gone."""
        rows = [
            {
                "name": to_text(node.name),
                "leaf_counts": dict(node.leaf_counts),
                "labels": dict(node.labels),
                "cpu": node.cpu,
                "memory": node.memory,
            }
            for node in nodes
        ]
        texts = "[" + ",".join(map(to_json, rows)) + "]"
        names = [to_text(name) for name in gone]
        async with leader_calls("noting nodes"):
            await self._pool.fetchval(
                sql("observe_nodes"),
                term.leadership,
                term.epoch,
                texts,
                names,
                _KEPT,
                self._now(),
            )

    async def retain(self, names: Sequence[NodeName], *, term: LeaderTerm) -> None:
        """Note that all other nodes are gone."""
        kept = [to_text(name) for name in names]
        async with leader_calls("noting nodes"):
            await self._pool.fetchval(
                sql("retain_nodes"),
                term.leadership,
                term.epoch,
                kept,
                self._now(),
            )

    async def count(self, keys: Sequence[str]) -> tuple[NodeCount, ...]:
        """Count the nodes by their devices and by these labels."""
        asked = [to_text(key) for key in keys]
        async with leader_calls("counting nodes"):
            rows = await self._pool.fetch(sql("seen_nodes"), asked, _KEPT, self._now())
        counts = (
            NodeCount(
                labels={
                    key: value
                    for key, value in zip(keys, row["labels"], strict=True)
                    if value is not None
                },
                leaf_counts=orjson.loads(row["leaf_counts"]),
                number=row["number"],
                cpu=row["cpu"],
                memory=row["memory"],
            )
            for row in rows
        )
        return tuple(sorted(counts, key=_order))

    async def present(self) -> tuple[LiveNode, ...]:
        """Return the nodes that are there, by name."""
        async with leader_calls("reading nodes"):
            rows = await self._pool.fetch(sql("present_nodes"))
        return tuple(
            LiveNode(
                name=NodeName(row["name"]),
                leaf_counts=orjson.loads(row["leaf_counts"]),
                labels=orjson.loads(row["labels"]),
                cpu=row["cpu"],
                memory=row["memory"],
            )
            for row in rows
        )

    async def version(self) -> int:
        """Return a number that grows with every change of the nodes."""
        async with leader_calls("asking about nodes"):
            return int(await self._pool.fetchval(sql("seen_nodes_version")))


def _order(count: NodeCount) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    return sorted(count.leaf_counts.items()), sorted(count.labels.items())
