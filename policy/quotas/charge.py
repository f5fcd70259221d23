"""A charge, the limits that apply to it, and those that it would exceed. Pure.

A *charge* is one gang's claim to leaf cells: what the ledger stores, and what quotas are compared
with. The ledger makes the comparison in the database, in one step with the charge; previews make it
here, by usage that was read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol
from uuid import UUID

from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.quotas.overflow import scopes_of
from policy.quotas.usage import MICROS_PER_HOUR
from policy.rules.decision import Range
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName

_UNLIMITED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuAndMemory:
    """CPU and memory."""

    cpu_millis: int = 0
    memory_bytes: int = 0

    @property
    def is_none(self) -> bool:
        """Whether it is neither."""
        return not (self.cpu_millis or self.memory_bytes)

    def times(self, count: int) -> "CpuAndMemory":
        """Return as much for so many."""
        return CpuAndMemory(
            cpu_millis=self.cpu_millis * count, memory_bytes=self.memory_bytes * count
        )

    def per(self, count: int) -> "CpuAndMemory":
        """Return the part of each of so many, rounded up; all of it for none."""
        parts = (-(-one // max(1, count)) for one in (self.cpu_millis, self.memory_bytes))
        cpu_millis, memory_bytes = parts
        return CpuAndMemory(cpu_millis=cpu_millis, memory_bytes=memory_bytes)

    def beyond(self, other: "CpuAndMemory") -> "CpuAndMemory":
        """Return what it has more than another."""
        return CpuAndMemory(
            cpu_millis=max(0, self.cpu_millis - other.cpu_millis),
            memory_bytes=max(0, self.memory_bytes - other.memory_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The claim of one gang. The names of user and group are not empty."""

    decision: UUID
    gang: GangKey
    user: UserName
    group: GroupName | None = None
    vc: VcName
    class_name: ClassName
    is_high: bool
    leaf_type: LeafType | None = None
    leaf_count: int
    places: int = field(default=0, compare=False)
    """What the charge covers for members that do not exist yet; `join` takes of it. For a gang that
    may have more members than its minimum: a number of members. If `leaf_count_each` is set: the
    leaf cells that members that are created later ask for beyond that number."""
    gang_size: int | None = field(default=None, compare=False)
    """The number of members that it was charged for, if known."""
    leaf_count_each: int | None = field(default=None, compare=False)
    """The leaf cells that each member was charged with, if members may differ."""
    rises_to: ClassName | None = field(default=None, compare=False)
    """The class that the quotas of its group keep from it. Such a charge is overflow: it uses up no
    limit of the group. None within quota."""
    raised_from: ClassName | None = field(default=None, compare=False)
    """The class of its pods, if it was overflow and the leader has raised it since."""

    cpu_millis: int = field(default=0, compare=False)
    memory_bytes: int = field(default=0, compare=False)
    """What its members with leaf cells request: assumed of members that do not exist yet, and
    counted by the leader once they do."""
    each: CpuAndMemory | None = field(default=None, compare=False)
    """What members are assumed to request for each leaf cell, if known: as the first one does."""

    @property
    def cpu_and_memory(self) -> CpuAndMemory:
        """Its CPU and memory."""
        return CpuAndMemory(cpu_millis=self.cpu_millis, memory_bytes=self.memory_bytes)

    def resized(self, leaf_count: int) -> "Charge":
        """Return it with other leaf cells, and CPU and memory of as many members."""
        grown = leaf_count - self.leaf_count
        if self.each is not None and grown > 0:
            return replace(self.with_more(self.each.times(grown)), leaf_count=leaf_count)
        if not self.leaf_count:
            return replace(self, leaf_count=leaf_count)
        return replace(
            self,
            leaf_count=leaf_count,
            cpu_millis=self.cpu_millis * leaf_count // self.leaf_count,
            memory_bytes=self.memory_bytes * leaf_count // self.leaf_count,
        )

    def with_more(self, more: CpuAndMemory) -> "Charge":
        """Return it with more CPU and memory."""
        return replace(
            self,
            cpu_millis=self.cpu_millis + more.cpu_millis,
            memory_bytes=self.memory_bytes + more.memory_bytes,
        )

    def asks(self, measure: Measure) -> int:
        """Return how much of a limit it needs."""
        match measure:
            case Measure.GANGS:
                return 1
            case Measure.CPU_MILLIS:
                return self.cpu_millis
            case Measure.MEMORY_BYTES:
                return self.memory_bytes
            case _:
                return 0 if measure.is_hours else self.leaf_count

    @property
    def covers_each_member(self) -> bool:
        """Whether it has at least `leaf_count_each` for each of its `gang_size` members."""
        if self.gang_size is None or self.leaf_count_each is None:
            return False
        return self.leaf_count >= self.gang_size * self.leaf_count_each

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that it counts in."""
        return scopes_of(self.user, self.group)


class Uses(Protocol):
    """What one scope holds and has used."""

    def used(self, measure: Measure, leaf_type: LeafType | None = None) -> int:
        """Return what counts towards a limit, in its unit."""


def choose_applicable(charge: Charge, limits: Iterable[Limit]) -> list[Limit]:
    """Return the limits that apply to a charge."""
    return [limit for limit in limits if applies(limit, charge)]


def applies(limit: Limit, charge: Charge) -> bool:
    """Tell whether a limit applies to a charge."""
    user, group = limit.scope.user, limit.scope.group
    if user is None and group is None:
        return False
    if user not in (None, charge.user) or group not in (None, charge.group):
        return False
    if charge.rises_to is not None and limit.scope.group is not None:
        return False  # it runs beyond the quotas of its group
    match limit.measure:
        case Measure.LEAF_CELLS_HIGH:
            return charge.is_high
        case Measure.LEAF_CELLS_LOW:
            return not charge.is_high
        case Measure.LEAF_CELLS_OF_TYPE:
            return limit.leaf_type is not None and limit.leaf_type == charge.leaf_type
        case _:
            return True


def range_limits(charge: Charge, valid: Range) -> tuple[Limit, ...]:
    """Turn the range in which a rule decision holds into limits on what its submitter then holds.

    If usage has left the range since the decision, the charge is refused and the decision is made
    again.
    """
    own, own_high = charge.leaf_count, charge.leaf_count * charge.is_high
    own_low = own - own_high
    ends = (
        (Measure.LEAF_CELLS, valid.occupied, own),
        (Measure.LEAF_CELLS_HIGH, valid.occupied_high, own_high),
        (Measure.LEAF_CELLS_LOW, valid.occupied_low, own_low),
    )
    return tuple(
        Limit(scope=Scope(charge.user), measure=measure, most=beside + counted)
        for measure, beside, counted in ends
        if beside is not None
    )


def find_exceeded(
    charge: Charge, limits: Iterable[Limit], usage: Callable[[Scope], Uses]
) -> Iterator[Exceeded]:
    """Yield the limits that a charge would exceed; `usage` is without the charge."""
    listed = tuple(limits)
    return compare(charge, listed, find_used(charge, listed, usage))


def find_used(
    charge: Charge, limits: Iterable[Limit], usage: Callable[[Scope], Uses]
) -> tuple[int | None, ...]:
    """Return how much of each limit is used; None for one that does not apply to a charge."""
    return tuple(
        usage(limit.scope).used(limit.measure, limit.leaf_type) if applies(limit, charge) else None
        for limit in limits
    )


def compare(
    charge: Charge, limits: Sequence[Limit], used: Sequence[int | None]
) -> Iterator[Exceeded]:
    """Yield the limits that a charge would exceed, given what is used of each without it.

    A limit of which that is not given counts as one that has room.
    """
    for limit, in_use in zip(limits, used, strict=True):
        if in_use is not None and applies(limit, charge):
            exceeded = build_exceeded(limit, charge=charge, used=in_use)
            if is_over(limit, in_use, exceeded.asked):
                yield exceeded


def is_over(limit: Limit, used: int, asked: int) -> bool:
    """Tell whether a limit would be exceeded, in the unit of `ScopeUsage.used`."""
    # How long a gang will run is unknown: it is refused once no hours are left.
    most = to_units(limit)
    return used >= most if limit.measure.is_hours else used + asked > most


def build_exceeded(limit: Limit, *, charge: Charge, used: int) -> Exceeded:
    """Describe an exceeded limit, with hours in hours; `used` is without the charge."""
    return to_exceeded(limit, used=used, asked=charge.asks(limit.measure))


def to_exceeded(limit: Limit, *, used: int, asked: int) -> Exceeded:
    """Describe an exceeded limit, with hours in hours; `used` is in the unit of `ScopeUsage`."""
    if limit.measure.is_hours:
        return Exceeded(limit=limit, used=used / MICROS_PER_HOUR, asked=asked)
    return Exceeded(limit=limit, used=used, asked=asked)


def to_units(limit: Limit) -> int:
    """Return the limit in the units of `ScopeUsage.used`."""
    return round(min(limit.most * (MICROS_PER_HOUR if limit.measure.is_hours else 1), _UNLIMITED))
