"""Limits: how much a user or group may hold of what.

Quotas say which limits apply; the ledger compares them with what is held.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from policy.submission import GroupName, LeafType, UserName


class Measure(StrEnum):
    """What a limit counts."""

    LEAF_CELLS = "leaf_cells"
    LEAF_CELLS_HIGH = "leaf_cells_high"
    LEAF_CELLS_LOW = "leaf_cells_low"
    """In classes that are not high. Not for quotas: rules decide the same up to such a number."""
    LEAF_CELLS_OF_TYPE = "leaf_cells_of_type"
    GANGS = "gangs"
    HOURS_DAY = "hours_day"
    HOURS_WEEK = "hours_week"
    HOURS_MONTH = "hours_month"
    HOURS_TOTAL = "hours_total"
    CPU_MILLIS = "cpu_millis"
    MEMORY_BYTES = "memory_bytes"

    @property
    def field(self) -> str:
        """The field of the Quotas and Billing documents that states such a limit."""
        return _FIELDS[self]

    @property
    def is_hours(self) -> bool:
        """Whether it counts hours, which a new charge does not change."""
        return self.value.startswith("hours")

    @property
    def is_amount(self) -> bool:
        """Whether it counts CPU or memory."""
        return self in (Measure.CPU_MILLIS, Measure.MEMORY_BYTES)


_FIELDS: Final = {
    Measure.LEAF_CELLS: "leafCells",
    Measure.LEAF_CELLS_HIGH: "leafCellsHigh",
    Measure.LEAF_CELLS_LOW: "leafCellsLow",
    Measure.LEAF_CELLS_OF_TYPE: "byLeafType",
    Measure.GANGS: "gangs",
    Measure.HOURS_DAY: "leafCellHours.day",
    Measure.HOURS_WEEK: "leafCellHours.week",
    Measure.HOURS_MONTH: "leafCellHours.month",
    Measure.HOURS_TOTAL: "leafCellHours.total",
    Measure.CPU_MILLIS: "cpu",
    Measure.MEMORY_BYTES: "memory",
}


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A user in all groups, a group, or a user within one group."""

    user: UserName | None = None
    group: GroupName | None = None

    def __str__(self) -> str:
        if self.user is None:
            return f"group {self.group}"
        return f"user {self.user}" + (f" in group {self.group}" if self.group else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most so many leaf cells or gangs, so much CPU or memory, or so many leaf-cell-hours."""

    scope: Scope
    measure: Measure
    most: float
    leaf_type: LeafType | None = None
    """For LEAF_CELLS_OF_TYPE only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceeded:
    """A limit that a charge would exceed."""

    limit: Limit
    used: float
    asked: int

    def __str__(self) -> str:
        what = f"{self.limit.measure.replace('_', ' ')} {self.limit.leaf_type or ''}".rstrip()
        return (
            f"{self.limit.scope}: {what}: {self.used:g} used, {self.asked} asked for, "
            f"at most {self.limit.most:g}"
        )
