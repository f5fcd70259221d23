"""Rows of the sums that the ledger in memory adds up. Pure."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

from state.ledger.ledger import Charge, DayUse, Holding

_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def to_holding(charge: Charge) -> Holding:
    """Say where a charge is held, without numbers."""
    return Holding(
        user=charge.user,
        group=charge.group,
        vc=charge.vc,
        class_name=charge.class_name,
        is_high=charge.is_high,
        leaf_type=charge.leaf_type,
        leaf_cells=0,
        gangs=0,
    )


def to_day(charge: Charge, day: date) -> DayUse:
    """Say whose use of a day a charge is, without numbers."""
    return DayUse(
        day=day,
        user=charge.user,
        group=charge.group,
        vc=charge.vc,
        class_name=charge.class_name,
        leaf_type=charge.leaf_type,
        leaf_micros=0,
    )


def order(row: Holding | DayUse) -> tuple[str, ...]:
    """Order by code point."""
    high = str(row.is_high) if isinstance(row, Holding) else ""
    return (row.user, row.group or "", row.vc, row.class_name, row.leaf_type or "", high)


def split(since: datetime, until: datetime) -> Iterable[tuple[date, int]]:
    """Cut a stretch of time at midnight, UTC."""
    day = since.astimezone(UTC).date()
    while (start := datetime.combine(day, time(), UTC)) < until:
        micros = (min(until, start + _DAY) - max(since, start)) // _MICROSECOND
        if micros:
            yield day, micros
        day += _DAY
