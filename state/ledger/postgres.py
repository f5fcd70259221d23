"""The ledger in Postgres: each call is one round trip to an SQL function of the schema.

The SQL functions, and with them the order of locks, are in the migrations. This module adds
deadlines, the translation of rows and errors, and batches of charges (`batches`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

import asyncpg
import orjson

from policy.quotas.charge import Charge, CpuAndMemory, build_exceeded, choose_applicable
from policy.quotas.limits import Limit, Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import ClassName, GangKey
from state.database.column_values import to_text
from state.database.database import backend_errors, leader_errors
from state.database.queries import sql
from state.ledger import rows
from state.ledger.batches import Batches
from state.ledger.ledger import (
    AGE_KEPT,
    MOST_EXPIRED,
    ChargeAnswer,
    Charged,
    DayUse,
    Held,
    Holding,
    KnownGang,
    LeaderTerm,
    LedgerDrift,
    LiveCharge,
    Queued,
    Refused,
    check_storable,
    choose_storable,
)

# SQLSTATE classes of errors that a retry does not fix: bad data, a broken constraint, too long.
_REFUSED_CLASSES = ("22", "23", "54")
# Lost races against another writer: nothing changed, and a retry sees the other write.
_LOST_RACES = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """How this process uses the ledger."""

    ttl_seconds: float = 10.0
    """How long an unconfirmed charge counts. If too short, a gang whose pods are created slowly is
    charged late; if too long, requests without pods block the quota of others."""

    charge_timeout_seconds: float = 0.25
    """The longest time that an answer to the API server waits for Postgres. If too short, a busy
    Postgres is treated as unavailable."""

    timeout_seconds: float = 10.0
    """The deadline of reads and of the leader's writes."""

    lanes: int = 2
    """Connections that charge at the same time. More connections mean smaller and so more costly
    batches, and charges of one group wait for each other in any case."""

    batch_size: int = 64
    """Charges in one transaction, which locks the rows of all their users and groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    charge: Charge
    limits: Sequence[Limit] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields for other requests than a plain charge: see the SQL function `ledger_charge`."""


class PostgresLedger:
    """A Ledger over the pool of an open, migrated database. Close it before the pool."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        settings: LedgerSettings | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        on_usage: Callable[[Sequence[ScopeUsage]], None] | None = None,
    ) -> None:
        """Use the clock of the database unless a test passes its own.

        `on_usage` is called with the usage that this process changed (`UsageCache.observe`).
        """
        self._pool = pool
        self._settings = settings or LedgerSettings()
        self._ttl = timedelta(seconds=self._settings.ttl_seconds)
        self._now: Callable[[], datetime | None] = clock or (lambda: None)
        self._on_usage = on_usage or (lambda usages: None)
        self._batches: Batches[_Asked, ChargeAnswer | ValueError] = Batches(
            self._charge_all, lanes=self._settings.lanes, batch_size=self._settings.batch_size
        )

    async def aclose(self) -> None:
        """Wait for charges that are in progress."""
        await self._batches.aclose()

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        """Charge a gang unless a limit would be exceeded."""
        return await self._ask(_Asked(charge=charge, limits=choose_applicable(charge, limits)))

    async def queue(self, charge: Charge) -> Held | Queued:
        """Record that a gang waits uncharged."""
        answer = await self._ask(_Asked(charge=charge, extra={"queues": True}))
        if isinstance(answer, Charged):
            return Held(live=answer.live, usage=answer.usage)
        assert not isinstance(answer, Refused), "a queued gang has no limits"
        return answer

    async def resize(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Change the leaf cells of a charged gang."""
        grown = live.resized(leaf_count)
        applicable = choose_applicable(grown, limits)
        extra = {"grows_from": live.leaf_count}
        return await self._ask(_Asked(charge=grown, limits=applicable, extra=extra))

    async def join(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Use a place of the charge for a new member, or else add leaf cells."""
        grown = live.resized(live.leaf_count + leaf_count)
        applicable = choose_applicable(grown, limits)
        extra = {"joins": leaf_count}
        return await self._ask(_Asked(charge=grown, limits=applicable, extra=extra))

    async def add(
        self, live: Charge, more: CpuAndMemory, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Add CPU and memory to the charge of a gang."""
        applicable = choose_applicable(live, limits)
        extra = {"adds_cpu": more.cpu_millis, "adds_memory": more.memory_bytes}
        return await self._ask(_Asked(charge=live.with_more(more), limits=applicable, extra=extra))

    async def raise_class(
        self,
        live: Charge,
        class_name: ClassName,
        *,
        is_high: bool,
        limits: Sequence[Limit] = (),
        term: LeaderTerm,
    ) -> Charged | Held | Refused | None:
        """Charge an overflow gang in a higher class, within the limits."""
        raised = replace(live, class_name=class_name, is_high=is_high, rises_to=None)
        applicable = choose_applicable(raised, limits)
        values = rows.to_raise_values(raised, seen=live, limits=applicable)
        row = orjson.loads(await self._write("raise", term, *values, self._now()))
        if row["outcome"] == "gone":
            return None
        answer = _to_answer(_Asked(charge=raised, limits=applicable), row)
        assert isinstance(answer, Charged | Held | Refused), "a raise has no other answer"
        if isinstance(answer, Charged):
            self._on_usage(answer.usage)
        return answer

    async def _ask(self, asked: _Asked) -> ChargeAnswer:
        check_storable(asked.charge)
        with backend_errors("charging a gang"):
            answer = await self._batches.ask(
                asked, timeout_seconds=self._settings.charge_timeout_seconds
            )
        if isinstance(answer, ValueError):
            raise answer
        return answer

    async def confirm(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """Keep the charges of gangs whose pods appeared."""
        found = await self._write("confirm", term, rows.to_gangs_json(gangs))
        return frozenset(map(rows.from_gang, orjson.loads(found)))

    async def release(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """End the charges of gangs whose last pod has ended."""
        ended = await self._write("release", term, rows.to_gangs_json(gangs), self._now())
        return frozenset(charge.gang for charge in self._ended(ended))

    async def expire(self, *, term: LeaderTerm) -> tuple[Charge, ...]:
        """End charges that were not confirmed in time."""
        ended = await self._write("expire", term, MOST_EXPIRED, self._now())
        return self._ended(ended)

    async def reconcile(
        self,
        existing: Sequence[Charge],
        *,
        term: LeaderTerm,
        grace_seconds: float = 30.0,
        seen: Sequence[LiveCharge] = (),
    ) -> LedgerDrift:
        """Make the charges match the gangs that have pods."""
        grace = timedelta(seconds=grace_seconds)
        charges = rows.to_charges_json(choose_storable(existing), seen)
        drift = rows.from_drift_json(
            await self._write("reconcile", term, charges, grace, self._now())
        )
        if drift != LedgerDrift():
            self._on_usage(())
        return drift

    async def recount(self, counted: Sequence[Charge], *, term: LeaderTerm) -> int:
        """Set the CPU and memory of charged gangs."""
        charges = rows.to_charges_json(choose_storable(counted), ())
        number = int(await self._write("recount", term, charges, self._now()))
        if number:
            self._on_usage(())
        return number

    async def note_reclaimed(
        self, first_asked: Mapping[GangKey, datetime], *, term: LeaderTerm
    ) -> None:
        """Remember since when gangs ask whose pods were ended for others."""
        gangs = rows.to_ages_json(first_asked)
        await self._write("note_reclaimed", term, gangs, AGE_KEPT, self._now())

    async def first_asked(self, gangs: Sequence[GangKey]) -> Mapping[GangKey, datetime]:
        """Return since when gangs ask, for those that were reclaimed lately."""
        names = [gang.namespace for gang in gangs], [gang.stored_name for gang in gangs]
        found = await self._read("first_asked", *names, AGE_KEPT, self._now())
        return {rows.from_gang(row): row["first_asked"] for row in found}

    async def find(self, gang: GangKey, *, scope: Scope) -> KnownGang:
        """Return the decision about a gang, and what a scope holds."""
        names = map(to_text, (gang.namespace, gang.stored_name))
        (row,) = await self._read("find_gang", *names, *_to_names(scope), self._now())
        return rows.from_known_gang(row, scope)

    async def charges(self) -> tuple[LiveCharge, ...]:
        """Return all live charges, sorted by gang."""
        return _to_live_charges(await self._read("live_charges"))

    async def charges_aged(
        self, *, least_seconds: float, most_seconds: float
    ) -> tuple[LiveCharge, ...]:
        """Return live charges that were made or resized within a range of ages."""
        least, most = timedelta(seconds=least_seconds), timedelta(seconds=most_seconds)
        return _to_live_charges(await self._read("charges_aged", least, most, self._now()))

    async def find_charged(self, gangs: Sequence[GangKey]) -> frozenset[GangKey]:
        """Return the gangs, among those given, that have a live charge."""
        names = [gang.namespace for gang in gangs], [gang.stored_name for gang in gangs]
        return frozenset(map(rows.from_gang, await self._read("charged_gangs", *names)))

    async def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used in the current day, week and month."""
        found = await self._read("usage_of_scope", *_to_names(scope), self._now())
        return rows.from_usage(orjson.loads(found[0][0])) if found else ScopeUsage(scope=scope)

    async def holdings(self, when: datetime | None = None) -> tuple[Holding, ...]:
        """Return the leaf cells held by each holder now, or at a moment."""
        found = await self._read("holdings_at", when)
        return tuple(sorted(map(rows.from_holding, found), key=rows.order_of))

    async def days(self, first: date, last: date) -> tuple[DayUse, ...]:
        """Return the leaf-cell-time used on each of these UTC days."""
        found = await self._read("leaf_time_of_days", first, last, self._now())
        return tuple(sorted(map(rows.from_day, found), key=rows.order_of))

    async def _charge_all(self, asked: Sequence[_Asked]) -> list[ChargeAnswer | ValueError]:
        """Charge a batch in one transaction. Raises ValueError if Postgres refuses all of it."""
        # Every replica locks gangs in the same order, so that two batches cannot deadlock.
        order = sorted(range(len(asked)), key=lambda number: asked[number].charge.gang)
        charges = [
            {
                **rows.to_charge_row(one.charge),
                "limits": rows.to_limit_rows(one.limits),
                **one.extra,
            }
            for one in (asked[number] for number in order)
        ]
        with _refusals():
            found = await self._fetch_charged(orjson.dumps(charges).decode())
        answers = {
            number: _to_answer(asked[number], orjson.loads(row[0]))
            for number, row in zip(order, found, strict=True)
        }
        for answer in answers.values():
            if isinstance(answer, Charged):
                self._on_usage(answer.usage)
        return [answers[number] for number in range(len(asked))]

    async def _fetch_charged(self, charges: str) -> list[asyncpg.Record]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._fetch(
                    "charge",
                    charges,
                    self._ttl,
                    self._now(),
                    timeout_seconds=self._settings.charge_timeout_seconds,
                )
            except _LOST_RACES:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _ended(self, text: str) -> tuple[Charge, ...]:
        ended = rows.from_charges_json(text)
        if ended:
            self._on_usage(())
        return ended

    async def _write(self, name: str, term: LeaderTerm, *values: Any) -> str:  # noqa: ANN401
        """Call an SQL function that only the leader may call."""
        with backend_errors(f"writing to the ledger ({name})"), leader_errors():
            found = await self._fetch(
                name,
                term.leadership,
                term.epoch,
                *values,
                timeout_seconds=self._settings.timeout_seconds,
            )
        return str(found[0][0])

    async def _read(self, name: str, *values: Any) -> list[asyncpg.Record]:  # noqa: ANN401
        with backend_errors("reading the ledger"):
            return await self._fetch(name, *values, timeout_seconds=self._settings.timeout_seconds)

    async def _fetch(
        self,
        name: str,
        *values: Any,  # noqa: ANN401
        timeout_seconds: float,
    ) -> list[asyncpg.Record]:
        async with self._pool.acquire(timeout=timeout_seconds) as connection:
            found: list[asyncpg.Record] = await connection.fetch(
                sql(name), *values, timeout=timeout_seconds
            )
            return found


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise ValueError for what Postgres will refuse again; other errors pass unchanged."""
    try:
        yield
    except asyncpg.PostgresError as error:
        if (error.sqlstate or "").startswith(_REFUSED_CLASSES):
            raise ValueError(str(error)) from error
        raise


def _to_names(scope: Scope) -> tuple[str, str]:
    return to_text(scope.user or ""), to_text(scope.group or "")


def _to_live_charges(found: Sequence[asyncpg.Record]) -> tuple[LiveCharge, ...]:
    live = [rows.from_live_charge(orjson.loads(row[0])) for row in found]
    return tuple(sorted(live, key=lambda live: live.charge.gang))


def _to_answer(asked: _Asked, row: rows.Row) -> ChargeAnswer | ValueError:
    match row["outcome"]:
        case "refused":
            # A joining member asks for more than the charge has by then, so the row has it.
            charge = rows.from_charge(row["charge"]) if "charge" in row else asked.charge
            return Refused(
                exceeded=tuple(
                    build_exceeded(asked.limits[found["index"]], charge=charge, used=found["used"])
                    for found in row["exceeded"]
                )
            )
        case "queued":
            return Queued(charge=rows.from_charge(row["charge"]))
        case "charged" | "held" as outcome:
            answer = Charged if outcome == "charged" else Held
            live = rows.from_live_charge(row["charge"])
            return answer(live=live, usage=_to_usages(row, live.charge))
        case _:
            return ValueError(f"decision {asked.charge.decision} belongs to another gang")


def _to_usages(row: rows.Row, charge: Charge) -> tuple[ScopeUsage, ...]:
    """Build the usage of each scope, in the order of the charge's scopes."""
    known = {usage.scope: usage for usage in map(rows.from_usage, row["usage"])}
    return tuple(known[scope] for scope in charge.scopes)
