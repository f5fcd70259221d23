"""Sums over charges, added up in the simplest way. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from policy.quotas.charge import Charge
from policy.submission import LeafType

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


def split_days(since: datetime, until: datetime) -> Iterator[tuple[date, int]]:
    """Yield the microseconds of each UTC day between two moments."""
    day = since.astimezone(UTC).date()
    while (start := datetime.combine(day, time(), UTC)) < until:
        micros = (min(until, start + _DAY) - max(since, start)) // _MICROSECOND
        if micros:
            yield day, micros
        day += _DAY
