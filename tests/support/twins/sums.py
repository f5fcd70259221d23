"""Sums over charges, added up in the simplest way. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from policy.quotas.charge import Charge
from policy.submission import LeafType
from state.ledger import rows
from state.ledger.ledger import DayUse, Holding

_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def sums_of(held: Sequence[Charge]) -> dict[str, Any]:
    """Return the fields of `HeldSums` for some charges."""
    by_type: defaultdict[LeafType, int] = defaultdict(int)
    for charge in held:
        if charge.leaf_type is not None and charge.leaf_count:
            by_type[charge.leaf_type] += charge.leaf_count
    return {
        "leaf_cells": sum(charge.leaf_count for charge in held),
        "leaf_cells_high": sum(charge.leaf_count for charge in held if charge.is_high),
        "gangs": len(held),
        "by_leaf_type": dict(by_type),
        "cpu_millis": sum(charge.cpu_millis for charge in held),
        "memory_bytes": sum(charge.memory_bytes for charge in held),
    }


def holdings_of(held: Iterable[Charge]) -> tuple[Holding, ...]:
    """Add up what each holder has."""
    found: defaultdict[Holding, list[Charge]] = defaultdict(list)
    for charge in held:
        row = rows.to_charge_row(charge) | {"leaf_count": 0, "gang_count": 0}
        found[rows.from_holding(row)].append(charge)
    sums = [
        replace(key, leaf_cells=sum(one.leaf_count for one in charges), gangs=len(charges))
        for key, charges in found.items()
    ]
    return tuple(sorted(sums, key=rows.order_of))


def days_of(billed: Iterable[tuple[Charge, datetime, datetime]]) -> tuple[DayUse, ...]:
    """Add up the leaf-cell-time of each holder and UTC day."""
    sums: defaultdict[DayUse, int] = defaultdict(int)
    for charge, since, until in billed:
        for day, micros in _split_days(since, until):
            if charge.leaf_count:
                row = rows.to_charge_row(charge) | {"day": day, "leaf_micros": 0}
                sums[rows.from_day(row)] += charge.leaf_count * micros
    found = [replace(key, leaf_micros=micros) for key, micros in sums.items()]
    return tuple(sorted(found, key=rows.order_of))


def _split_days(since: datetime, until: datetime) -> Iterator[tuple[date, int]]:
    """Yield the microseconds of each UTC day between two moments."""
    day = since.astimezone(UTC).date()
    while (start := datetime.combine(day, time(), UTC)) < until:
        micros = (min(until, start + _DAY) - max(since, start)) // _MICROSECOND
        if micros:
            yield day, micros
        day += _DAY
