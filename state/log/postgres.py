"""The rows of the decision log in Postgres."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Any, Final

import asyncpg
import orjson

from state.database.column_values import to_json, to_optional_text, to_text
from state.database.database import backend_errors
from state.database.queries import sql
from state.history.facts import format_facts
from state.log.positions import END, Position
from state.log.records import NOT_LISTED, DecisionRecord, LoggedDocument
from state.log.stretches import EpochStretch, Term, Wanted

# SQLSTATE classes of errors that a retry does not fix: bad data, a broken constraint, too large.
_REFUSED_CLASSES = ("22", "23", "54")
_NOT_LISTED: Final = sorted(NOT_LISTED)


class PostgresDecisions:
    """A DecisionStore over the tables `decisions`, `documents`, `log_terms` and `gang_history`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Store all records with their documents and facts, or none, in one transaction."""
        if not records:
            return []
        with backend_errors("writing decisions"):
            try:
                return await self._insert(records)
            except ValueError as error:  # from asyncpg, for a value that it cannot encode
                raise ValueError(str(error)) from error
            except asyncpg.PostgresError as error:
                if (error.sqlstate or "").startswith(_REFUSED_CLASSES):
                    raise ValueError(str(error)) from error
                raise

    async def recent(
        self,
        limit: int,
        *,
        subject: str | None = None,
        with_observations: bool = False,
        before: Position = END,
    ) -> list[DecisionRecord]:
        """Return the newest records older than `before`, newest first."""
        values = (limit, with_observations, _NOT_LISTED, before.at, before.key)
        with backend_errors("reading decisions"):
            if subject is None:
                rows = await self._pool.fetch(sql("recent_decisions"), *values)
            else:
                query = sql("recent_decisions_of_subject")
                rows = await self._pool.fetch(query, *values, to_text(subject))
        return [_from_row(row) for row in rows]

    async def of_kind(
        self, kind: str, subjects: Sequence[str], *, since: datetime, until: datetime, limit: int
    ) -> list[DecisionRecord]:
        """Return the records of one kind about some subjects, newest first."""
        values = kind, list(map(to_text, subjects)), since, until, limit
        with backend_errors("reading decisions"):
            rows = await self._pool.fetch(sql("decisions_of_kind"), *values)
        return [_from_row(row) for row in rows]

    async def of_pod(self, pod_uid: str, limit: int) -> list[DecisionRecord]:
        """Return the records of one pod, newest first."""
        with backend_errors("reading decisions"):
            rows = await self._pool.fetch(sql("why_this_pod"), to_text(pod_uid), limit)
        return [_from_row(row) for row in rows]

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return records of one epoch, in the order of `sequence`, from `first` on."""
        with backend_errors("reading decisions"):
            rows = await self._pool.fetch(sql("rows_of_epoch"), service, epoch, first, limit)
        return [_from_row(row) for row in rows]

    async def of_kinds(
        self, service: str, kinds: Sequence[str], *, epoch: int, first: int, last: int, limit: int
    ) -> list[DecisionRecord]:
        """Return records of some kinds of one epoch, in the order of `sequence`."""
        values = service, epoch, first, last, list(kinds), limit
        with backend_errors("reading decisions"):
            rows = await self._pool.fetch(sql("kinds_of_epoch"), *values)
        return [_from_row(row) for row in rows]

    async def epochs(self, service: str, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs of a service that have wanted rows, in order."""
        values: list[Any] = [to_text(service), wanted.since, wanted.until]
        query = "epochs_between"
        if wanted.subject is not None:
            values.append(to_text(wanted.subject))
            query = "epochs_of_subject_between"
        with backend_errors("reading epochs"):
            rows = await self._pool.fetch(sql(query), *values)
        return [EpochStretch(**row) for row in rows]

    async def beside_epochs(
        self, service: str, wanted: Wanted, *, after: Position, limit: int
    ) -> list[DecisionRecord]:
        """Return wanted rows that are in no epoch of a service, oldest first, after a position."""
        subject = None if wanted.subject is None else to_text(wanted.subject)
        values = to_text(service), wanted.until, subject, after.at, after.key, limit
        with backend_errors("reading decisions"):
            rows = await self._pool.fetch(sql("rows_beside_epochs"), *values)
        return [_from_row(row) for row in rows]

    async def count_stored(self, records: Sequence[DecisionRecord]) -> int:
        """Count those of some rows that are stored."""
        times, keys = [one.at for one in records], [one.key for one in records]
        with backend_errors("reading decisions"):
            return int(await self._pool.fetchval(sql("count_stored"), times, keys))

    async def terms(self) -> dict[Term, datetime]:
        """Return which terms of services the log knows, and when each began."""
        with backend_errors("reading terms"):
            rows = await self._pool.fetch(sql("known_terms"))
        return {(row["service"], row["epoch"]): row["began_at"] for row in rows}

    async def is_empty(self) -> bool:
        """Tell whether the log has neither rows nor terms."""
        with backend_errors("reading decisions"):
            return not await self._pool.fetchval(sql("has_decisions")) and not await self.terms()

    async def adopt(self, terms: Mapping[Term, datetime], days: Iterable[date]) -> None:
        """Prepare for rows of another log: its terms and its days."""
        services = [to_text(service) for service, _ in terms]
        epochs = [epoch for _, epoch in terms]
        with backend_errors("preparing an import"):
            await self._pool.execute(sql("adopt_terms"), services, epochs, [*terms.values()])
            for day in sorted(days):
                await self._pool.execute(sql("ensure_decision_days"), day, 1)

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that records refer to."""
        with backend_errors("reading documents"):
            row = await self._pool.fetchrow(sql("document_of_hash"), to_text(document_hash))
        return LoggedDocument(**row) if row else None

    async def _insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        runs = [list(run) for _, run in groupby(records, key=_term)]
        extras = any(record.documents or record.facts for record in records)
        if len(runs) == 1 and not extras:  # the usual case: one round trip
            return await _insert_rows(self._pool, runs[0])
        async with self._pool.acquire() as connection, connection.transaction():
            refused = [record for run in runs for record in await _insert_rows(connection, run)]
            keys = {record.key for record in refused}
            stored = [record for record in records if record.key not in keys]
            await _insert_documents(connection, stored)
            await _record_runs(connection, stored)
            return refused


def _term(record: DecisionRecord) -> tuple[str, int | None]:
    return record.service, record.epoch


async def _insert_rows(
    connection: asyncpg.Pool | asyncpg.Connection, records: Sequence[DecisionRecord]
) -> list[DecisionRecord]:
    """Store records of one epoch; return those decided after a newer epoch had begun."""
    service, epoch = _term(records[0])
    columns = zip(*map(_to_row, records), strict=True)
    query = sql("insert_decisions")
    takeover = await connection.fetchval(query, to_text(service), epoch, *map(list, columns))
    return [record for record in records if takeover is not None and record.at >= takeover]


async def _insert_documents(
    connection: asyncpg.Connection, records: Iterable[DecisionRecord]
) -> None:
    rows = {
        document.hash: (to_text(document.kind), to_text(document.content), record.at)
        for record in records
        for document in record.documents
    }
    if rows:
        # Sorted, so that two writers cannot deadlock.
        columns = zip(*((key, *rows[key]) for key in sorted(rows)), strict=True)
        await connection.execute(sql("insert_documents"), *map(list, columns))


async def _record_runs(connection: asyncpg.Connection, records: Iterable[DecisionRecord]) -> None:
    facts = [record.facts for record in records if record.facts]
    if facts:
        await connection.execute(sql("record_runs"), format_facts(facts))


def _to_row(record: DecisionRecord) -> tuple[Any, ...]:
    """Return the values in the order of the query `insert_decisions`."""
    return (
        record.key,
        record.at,
        to_text(record.kind),
        to_text(record.subject),
        to_optional_text(record.pod_uid),
        to_text(record.outcome),
        to_text(record.reason),
        to_optional_text(record.policy_version),
        record.sequence,
        record.latency_seconds,
        to_json(record.details),
        to_json(record.inputs),
    )


def _from_row(row: asyncpg.Record) -> DecisionRecord:
    values = dict(row)
    values["details"] = orjson.loads(values["details"])
    values["inputs"] = orjson.loads(values["inputs"])
    return DecisionRecord(**values)
