"""What a scope holds, and how much of that is within quota. Pure.

A *scope* is a user, a group, or a user within a group. Its *overflow* is what gangs hold that run
beyond the quotas of their group: it is held, but it uses up no quota.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from policy.quotas.limits import Measure, Scope
from policy.submission import LeafType

MICROS_PER_HOUR: Final = 3_600_000_000
_MICROSECOND: Final = timedelta(microseconds=1)
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Before anything was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSums:
    """Sums of what gangs hold."""

    leaf_cells: int = 0
    leaf_cells_high: int = 0
    gangs: int = 0
    by_leaf_type: Mapping[LeafType, int] = field(default_factory=dict)
    cpu_millis: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeUsage(HeldSums):
    """What one scope holds now, and the leaf-cell-time it has used in the current periods.

    The leaf-cell-time is that within quota.
    """

    scope: Scope
    overflow: HeldSums = field(default_factory=HeldSums)
    """The part that is beyond the quotas of its groups."""
    day_micros: int = 0
    week_micros: int = 0
    month_micros: int = 0
    total_micros: int = 0
    counted_at: datetime | None = field(default=None, compare=False)
    """When the leaf-cell-time was counted; it has grown since. None if nothing was ever held."""
    version: int = field(default=0, compare=False)
    """Increases with each change: the higher of two versions is the newer one."""

    def advance(self, now: datetime) -> "ScopeUsage":
        """Return the usage at a later moment if nothing is charged or released until then."""
        if self.counted_at is None or now <= self.counted_at:
            return self
        day = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
        week, month = day - timedelta(days=day.weekday()), day.replace(day=1)
        return replace(
            self,
            day_micros=self._since(day, self.day_micros, now),
            week_micros=self._since(week, self.week_micros, now),
            month_micros=self._since(month, self.month_micros, now),
            total_micros=self._since(_EVER, self.total_micros, now),
            counted_at=now,
        )

    def _since(self, begin: datetime, used: int, now: datetime) -> int:
        """Return the use since `begin`; a period that began after the last count starts at zero."""
        assert self.counted_at is not None
        counted = used if begin <= self.counted_at else 0
        within_quota = self.leaf_cells - self.overflow.leaf_cells
        return counted + within_quota * ((now - max(begin, self.counted_at)) // _MICROSECOND)

    def used(self, measure: Measure, leaf_type: LeafType | None = None) -> int:
        """Return what counts towards a limit, in its unit; leaf-cell-time in microseconds.

        A limit in a group is a quota, and counts what is within quota. A limit on a user in all
        groups comes from rules, which count everything.
        """
        match measure:
            case Measure.HOURS_DAY:
                return self.day_micros
            case Measure.HOURS_WEEK:
                return self.week_micros
            case Measure.HOURS_MONTH:
                return self.month_micros
            case Measure.HOURS_TOTAL:
                return self.total_micros
        beyond = 0 if self.scope.group is None else _amount(self.overflow, measure, leaf_type)
        return _amount(self, measure, leaf_type) - beyond


def _amount(sums: HeldSums, measure: Measure, leaf_type: LeafType | None) -> int:
    match measure:
        case Measure.LEAF_CELLS:
            return sums.leaf_cells
        case Measure.LEAF_CELLS_HIGH:
            return sums.leaf_cells_high
        case Measure.LEAF_CELLS_LOW:
            return sums.leaf_cells - sums.leaf_cells_high
        case Measure.LEAF_CELLS_OF_TYPE:
            return sums.by_leaf_type.get(leaf_type or LeafType(""), 0)
        case Measure.GANGS:
            return sums.gangs
        case Measure.CPU_MILLIS:
            return sums.cpu_millis
        case Measure.MEMORY_BYTES:
            return sums.memory_bytes
        case _:
            raise ValueError(f"{measure} is not a sum of what gangs hold")
