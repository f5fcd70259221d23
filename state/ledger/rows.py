"""Charges and usage, from and to the rows of the ledger's SQL functions. Pure.

A missing group or leaf type is the empty text in SQL, because a primary key has no NULL.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from policy.quotas.charge import Charge, CpuAndMemory, to_units
from policy.quotas.limits import Limit, Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from state.database.column_values import to_text
from state.ledger.ledger import DayUse, Holding, KnownGang, LedgerDrift, LiveCharge

Row = Mapping[str, Any]


def to_charge_row(charge: Charge) -> dict[str, Any]:
    """Return the columns of `charges` that the services set."""
    return {
        "decision": str(charge.decision),
        "namespace": to_text(charge.gang.namespace),
        "gang": to_text(charge.gang.stored_name),
        "user_name": to_text(charge.user),
        "group_name": to_text(charge.group or ""),
        "vc": to_text(charge.vc),
        "class": to_text(charge.class_name),
        "is_high": charge.is_high,
        "leaf_type": to_text(charge.leaf_type or ""),
        "leaf_count": charge.leaf_count,
        "places": charge.places,
        "gang_size": charge.gang_size,
        "leaf_count_each": charge.leaf_count_each,
        "rises_to": None if charge.rises_to is None else to_text(charge.rises_to),
        "raised_from": None if charge.raised_from is None else to_text(charge.raised_from),
        "cpu_millis": charge.cpu_millis,
        "memory_bytes": charge.memory_bytes,
        "cpu_each": None if charge.each is None else charge.each.cpu_millis,
        "memory_each": None if charge.each is None else charge.each.memory_bytes,
    }


def to_limit_rows(limits: Sequence[Limit]) -> list[Row]:
    """Return limits as `ledger_exceeded` reads them; an answer refers to them by index."""
    return [_to_limit_row(index, limit) for index, limit in enumerate(limits)]


# Cached, because every charge of a group or user has the same limits.
@lru_cache(maxsize=8192)
def _to_limit_row(index: int, limit: Limit) -> Row:
    return {
        "index": index,
        "user_name": to_text(limit.scope.user or ""),
        "group_name": to_text(limit.scope.group or ""),
        "measure": limit.measure.value,
        "leaf_type": to_text(limit.leaf_type or ""),
        "most": to_units(limit),
    }


def to_raise_values(
    raised: Charge, *, seen: Charge, limits: Sequence[Limit]
) -> tuple[str, str, bool, str]:
    """Return the charge that the leader saw, the new class, and the limits, for `ledger_raise`."""
    return (
        orjson.dumps(to_charge_row(seen)).decode(),
        to_text(raised.class_name),
        raised.is_high,
        orjson.dumps(to_limit_rows(limits)).decode(),
    )


def to_gangs_json(gangs: Sequence[GangKey]) -> str:
    """Return the keys of gangs as JSON."""
    names = [
        {"namespace": to_text(gang.namespace), "gang": to_text(gang.stored_name)} for gang in gangs
    ]
    return orjson.dumps(names).decode()


def to_ages_json(first_asked: Mapping[GangKey, datetime]) -> str:
    """Return since when gangs ask as JSON."""
    ages = [
        {
            "namespace": to_text(gang.namespace),
            "gang": to_text(gang.stored_name),
            "first_asked": asked.isoformat(),
        }
        for gang, asked in first_asked.items()
    ]
    return orjson.dumps(ages).decode()


def to_charges_json(charges: Sequence[Charge], seen: Sequence[LiveCharge]) -> str:
    """Return charges as JSON, each with the size and time at which it was seen."""
    known = {live.charge.gang: live for live in seen}
    rows = [{**to_charge_row(one), **_to_seen(known.get(one.gang))} for one in charges]
    return orjson.dumps(rows).decode()


def _to_seen(live: LiveCharge | None) -> dict[str, Any]:
    if live is None:
        return {}
    return {"seen_at": live.charged_at.isoformat(), "seen_leaf_count": live.charge.leaf_count}


def from_gang(row: Row) -> GangKey:
    """Build the key of a gang from a row."""
    return GangKey.from_stored(row["namespace"], row["gang"])


def from_charge(row: Row) -> Charge:
    """Build a charge from a row of `charges`."""
    return Charge(
        decision=UUID(row["decision"]),
        gang=from_gang(row),
        **_holder(row),
        is_high=row["is_high"],
        leaf_count=row["leaf_count"],
        places=row.get("places") or 0,
        gang_size=row.get("gang_size"),
        leaf_count_each=row.get("leaf_count_each"),
        rises_to=row.get("rises_to"),
        raised_from=row.get("raised_from"),
        cpu_millis=row.get("cpu_millis") or 0,
        memory_bytes=row.get("memory_bytes") or 0,
        each=_each(row),
    )


def _each(row: Row) -> CpuAndMemory | None:
    cpu_millis, memory_bytes = row.get("cpu_each"), row.get("memory_each")
    if cpu_millis is None or memory_bytes is None:
        return None
    return CpuAndMemory(cpu_millis=cpu_millis, memory_bytes=memory_bytes)


def from_live_charge(row: Row) -> LiveCharge:
    """Build a live charge from a row of `charges`."""
    expires_at = row["expires_at"]
    return LiveCharge(
        charge=from_charge(row),
        charged_at=datetime.fromisoformat(row["charged_at"]),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
    )


def from_charges_json(text: str) -> tuple[Charge, ...]:
    """Build charges from JSON, sorted by gang."""
    return _charges(orjson.loads(text))


def from_drift_json(text: str) -> LedgerDrift:
    """Build the answer of `ledger_reconcile`."""
    return LedgerDrift(**{key: _charges(rows) for key, rows in orjson.loads(text).items()})


def _charges(rows: Sequence[Row]) -> tuple[Charge, ...]:
    return tuple(sorted(map(from_charge, rows), key=lambda charge: charge.gang))


def scope_of(row: Row) -> Scope:
    """Build the scope of a row of `ledger_usage`."""
    user, group = row["user"], row["group"]
    return Scope(UserName(user) if user else None, GroupName(group) if group else None)


def from_usage(row: Row) -> ScopeUsage:
    """Build the usage of a row of `ledger_usage`."""
    return ScopeUsage(
        scope=scope_of(row),
        leaf_cells=row["leaf_cells"],
        leaf_cells_high=row["leaf_cells_high"],
        gangs=row["gangs"],
        by_leaf_type=row["by_leaf_type"],
        overflow=HeldSums(
            **(row["overflow"] or {}),
            cpu_millis=row["overflow_cpu_millis"] or 0,
            memory_bytes=row["overflow_memory_bytes"] or 0,
        ),
        day_micros=row["day_micros"],
        week_micros=row["week_micros"],
        month_micros=row["month_micros"],
        total_micros=row["total_micros"],
        cpu_millis=row["cpu_millis"],
        memory_bytes=row["memory_bytes"],
        counted_at=datetime.fromisoformat(row["counted_at"]),
        version=row["version"],
    )


def from_known_gang(row: Row, scope: Scope) -> KnownGang:
    """Build what the query `find_gang` read about a gang and a scope."""
    live, queued, usage = (
        row[key] and orjson.loads(row[key]) for key in ("live", "queued", "usage")
    )
    return KnownGang(
        live=from_live_charge(live) if live else None,
        queued=from_charge(queued) if queued and not live else None,
        usage=from_usage(usage) if usage else ScopeUsage(scope=scope),
    )


def from_holding(row: Row) -> Holding:
    """Build a holding from a row of the query `holdings_at`."""
    return Holding(
        **_holder(row),
        is_high=row["is_high"],
        leaf_cells=row["leaf_count"],
        gangs=row["gang_count"],
    )


def from_day(row: Row) -> DayUse:
    """Build the use of a day from a row of the query `leaf_time_of_days`."""
    return DayUse(day=row["day"], **_holder(row), leaf_micros=row["leaf_micros"])


def order_of(row: Holding | DayUse) -> tuple[str, ...]:
    """Return a sort key: by code point, independent of the collation of the database."""
    day = row.day.isoformat() if isinstance(row, DayUse) else ""
    high = str(row.is_high) if isinstance(row, Holding) else ""
    return (day, row.user, row.group or "", row.vc, row.class_name, row.leaf_type or "", high)


def _holder(row: Row) -> dict[str, Any]:
    """Return the fields that charges and sums have in common."""
    return {
        "user": UserName(row["user_name"]),
        "group": GroupName(row["group_name"]) if row["group_name"] else None,
        "vc": VcName(row["vc"]),
        "class_name": ClassName(row["class"]),
        "leaf_type": LeafType(row["leaf_type"]) if row["leaf_type"] else None,
    }
