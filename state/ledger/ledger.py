"""The ledger: who holds or has reserved how many leaf cells, and within which limits.

A *charge* is one gang's claim. The webhook makes it before it answers; the extender's leader
confirms it when the gang's pods appear, releases it when the last one has ended, and expires it
if none ever came. `Ledger` is the port; `state.ledger.postgres` and `state.ledger.memory` are
held to one contract.

A *scope* is whose holdings are summed: a user, a group, or a user within a group. Every charge
counts in all of its own scopes, so a limit is one comparison, and all limits of a charge are
looked at in one atomic step.

Four answers, none of them an exception: `Charged`, `Held` (the gang has another charge than the one
asked for: one decision per gang), `Queued` (it waits uncharged, by another decision) and `Refused`.
BackendError means "not known": the charge may have been made; it then expires by itself, or is
confirmed with its pods.

Leaf-cell-hours are leaf cells times the time from charge to release, exact to the microsecond, by
UTC day, ISO week and month. A charge that expired is taken back altogether: nobody can use up
somebody else's hours with pods that never come.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from uuid import UUID

from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName

MICROS_PER_HOUR = 3_600_000_000
_MICROSECOND = timedelta(microseconds=1)
_UNLIMITED = 2**63 - 1
_LARGEST_COUNT = 2**31 - 1
_LONGEST_KEY = 2500
"""Bytes: what a page of an index of Postgres takes is a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one gang asks for. Neither user nor group name is the empty text."""

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
    """Of a gang that may have more members than it needs: how many of those that are still to come
    it covers. The ledger counts them (`join`)."""
    gang_size: int | None = field(default=None, compare=False)
    """For how many members it was charged, if that is known."""
    leaf_count_each: int | None = field(default=None, compare=False)
    """With how many leaf cells each of them was reckoned, if members may differ."""

    @property
    def is_reckoned(self) -> bool:
        """Whether it still has as much for each member as when it was made, or more."""
        if self.gang_size is None or self.leaf_count_each is None:
            return False
        return self.leaf_count >= self.gang_size * self.leaf_count_each

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All scopes in which it counts."""
        if self.group is None:
            return (Scope(self.user),)
        return (Scope(self.user), Scope(self.user, self.group), Scope(None, self.group))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCharge:
    """A charge that counts."""

    charge: Charge
    charged_at: datetime
    expires_at: datetime | None
    """When it ends unless its pods appear; None once they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeUsage:
    """What one scope holds, and the leaf-cell-time it has used in the current periods."""

    scope: Scope
    leaf_cells: int = 0
    leaf_cells_high: int = 0
    gangs: int = 0
    by_leaf_type: Mapping[LeafType, int] = field(default_factory=dict)
    day_micros: int = 0
    week_micros: int = 0
    month_micros: int = 0
    counted_at: datetime | None = field(default=None, compare=False)
    """When that was so: leaf-cell-time has grown since. None if nothing was ever held."""
    version: int = field(default=0, compare=False)
    """Grows with each change; of two, the higher one is newer."""

    def advance(self, now: datetime) -> "ScopeUsage":
        """Return what it is at a later moment, if nothing is charged or released meanwhile."""
        if self.counted_at is None or now <= self.counted_at:
            return self
        day = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
        week, month = day - timedelta(days=day.weekday()), day.replace(day=1)
        return replace(
            self,
            day_micros=self._since(day, self.day_micros, now),
            week_micros=self._since(week, self.week_micros, now),
            month_micros=self._since(month, self.month_micros, now),
            counted_at=now,
        )

    def _since(self, begin: datetime, used: int, now: datetime) -> int:
        """Count a period that began then; one that ended since the last count starts at nothing."""
        assert self.counted_at is not None
        counted = used if begin <= self.counted_at else 0
        return counted + self.leaf_cells * ((now - max(begin, self.counted_at)) // _MICROSECOND)

    def used(self, measure: Measure, leaf_type: LeafType | None = None) -> int:
        """How much of a measure: leaf cells, gangs, or leaf-cell-microseconds."""
        match measure:
            case Measure.LEAF_CELLS:
                return self.leaf_cells
            case Measure.LEAF_CELLS_HIGH:
                return self.leaf_cells_high
            case Measure.LEAF_CELLS_OF_TYPE:
                return self.by_leaf_type.get(leaf_type or LeafType(""), 0)
            case Measure.GANGS:
                return self.gangs
            case Measure.HOURS_DAY:
                return self.day_micros
            case Measure.HOURS_WEEK:
                return self.week_micros
            case Measure.HOURS_MONTH:
                return self.month_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """The charge counts, now or since an earlier call with the same decision."""

    live: LiveCharge
    usage: tuple[ScopeUsage, ...]
    """Of its scopes, with this charge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing changed: the gang is charged already, by another decision or otherwise than asked."""

    live: LiveCharge
    usage: tuple[ScopeUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing changed: these limits would be exceeded, all of them."""

    exceeded: tuple[Exceeded, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """Nothing changed: the gang waits for room in its quotas, and will be charged like this."""

    charge: Charge


ChargeAnswer = Charged | Held | Queued | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderTerm:
    """A leadership term: only its holder confirms, releases, expires and reconciles."""

    leadership: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDrift:
    """What a reconcile found different from the pods, and made equal."""

    released: tuple[Charge, ...] = ()
    """Charged, but without pods."""
    created: tuple[Charge, ...] = ()
    """With pods, but not charged (or not as it is: then it is in `corrected` too)."""
    corrected: tuple[Charge, ...] = ()
    """Charged otherwise than the pods are, as it was charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Leaf cells held by one user for one group in one VC, class and leaf type."""

    user: UserName
    group: GroupName | None
    vc: VcName
    class_name: ClassName
    is_high: bool
    leaf_type: LeafType | None
    leaf_cells: int
    gangs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayUse:
    """Leaf-cell-time of one UTC day."""

    day: date
    user: UserName
    group: GroupName | None
    vc: VcName
    class_name: ClassName
    leaf_type: LeafType | None
    leaf_micros: int

    @property
    def hours(self) -> float:
        """In leaf-cell-hours."""
        return self.leaf_micros / MICROS_PER_HOUR


class Ledger(Protocol):
    """The port. Every method raises BackendError if the ledger does not answer in time."""

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        """Charge a gang if no limit is exceeded, all looked at in one step.

        Raises ValueError if the decision is that of another live gang, or by `check_storable`.
        """

    async def queue(self, charge: Charge) -> Held | Queued:
        """Remember that a gang waits uncharged; return the decision that its members follow.

        Like a charge it is forgotten soon unless it is confirmed, and when it is released; also
        when the gang is charged by the same decision, as only the leader does.
        """

    async def resize(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Let a charged gang have more leaf cells, if the limits allow it, or fewer.

        Held if it is not charged like `live` any more: then look again.
        """

    async def join(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Give one more member a place in a charged gang, else let it grow by so many leaf cells.

        Whatever it has grown to by now; Held if it is another one, or has to be looked at again. A
        member that is asked about twice may count twice.
        """

    async def confirm(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """Keep the charges of gangs whose pods were seen; return the gangs that have one.

        This and all that take a term raise ConflictError if a later epoch has written.
        """

    async def release(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """End the charges of gangs whose last pod has ended; return the gangs that had one."""

    async def expire(self, *, term: LeaderTerm) -> tuple[Charge, ...]:
        """End charges that were not confirmed in time; return them. Many at a time, not all."""

    async def reconcile(
        self,
        existing: Sequence[Charge],
        *,
        term: LeaderTerm,
        grace_seconds: float = 30.0,
        seen: Sequence[LiveCharge] = (),
    ) -> LedgerDrift:
        """Make the ledger equal to the gangs that have pods, one entry for each gang.

        Confirmed charges without pods end if they are older than the grace time. One that is not
        as it was `seen` any more has grown for a pod that was not: it is left as it is. What
        `check_storable` refuses is left out.
        """

    async def charges(self) -> tuple[LiveCharge, ...]:
        """Return all live charges, by gang."""

    async def charges_aged(
        self, *, least_seconds: float, most_seconds: float
    ) -> tuple[LiveCharge, ...]:
        """Return live charges that were made, or had their size changed, so long ago; by gang."""

    async def find_charged(self, gangs: Sequence[GangKey]) -> frozenset[GangKey]:
        """Return those of some gangs that have a live charge."""

    async def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds and has used in this day, week and month."""

    async def holdings(self, when: datetime | None = None) -> tuple[Holding, ...]:
        """Return who held what at a moment, or holds now; expired charges counted, too."""

    async def days(self, first: date, last: date) -> tuple[DayUse, ...]:
        """Return the leaf-cell-time used on each of these UTC days."""


def choose_applicable(charge: Charge, limits: Iterable[Limit]) -> list[Limit]:
    """Leave out limits that say nothing about this charge."""
    scopes = charge.scopes
    return [limit for limit in limits if limit.scope in scopes and _applies(limit, charge)]


def _applies(limit: Limit, charge: Charge) -> bool:
    match limit.measure:
        case Measure.LEAF_CELLS_HIGH:
            return charge.is_high
        case Measure.LEAF_CELLS_OF_TYPE:
            return limit.leaf_type is not None and limit.leaf_type == charge.leaf_type
        case _:
            return True


def find_exceeded(
    charge: Charge, limits: Iterable[Limit], usage: Callable[[Scope], ScopeUsage]
) -> Iterator[Exceeded]:
    """Yield the limits that a charge would exceed; `usage` is without the charge."""
    for limit in choose_applicable(charge, limits):
        used = usage(limit.scope).used(limit.measure, limit.leaf_type)
        exceeded = build_exceeded(limit, charge=charge, used=used)
        # How long a gang will run is unknown: it is refused once no hours are left.
        most = to_units(limit)
        if used >= most if limit.measure.is_hours else used + exceeded.asked > most:
            yield exceeded


def build_exceeded(limit: Limit, *, charge: Charge, used: int) -> Exceeded:
    """Tell a limit's numbers, hours as hours; `used` is without the charge."""
    if limit.measure.is_hours:
        return Exceeded(limit=limit, used=used / MICROS_PER_HOUR, asked=0)
    asked = 1 if limit.measure is Measure.GANGS else charge.leaf_count
    return Exceeded(limit=limit, used=used, asked=asked)


def to_units(limit: Limit) -> int:
    """Return the limit in the units that are counted: leaf cells, gangs or microseconds."""
    return round(min(limit.most * (MICROS_PER_HOUR if limit.measure.is_hours else 1), _UNLIMITED))


def check_storable(charge: Charge) -> None:
    """Raise ValueError for a charge that no ledger can hold, before it costs another one."""
    if not charge.user or charge.group == "":
        raise ValueError(f"gang {charge.gang}: the name of its user or group is empty")
    if not 0 <= charge.leaf_count <= _LARGEST_COUNT:
        raise ValueError(f"gang {charge.gang}: {charge.leaf_count} leaf cells cannot be counted")
    for texts in ((charge.gang.namespace, charge.gang.name), _whose(charge)):
        length = sum(len(text.encode(errors="replace")) for text in texts)
        if length > _LONGEST_KEY:
            raise ValueError(f"names of {length} bytes are too long for the ledger")


def _whose(charge: Charge) -> tuple[str, ...]:
    """Name whom and what its hours are summed for."""
    group, leaf_type = charge.group or "", charge.leaf_type or ""
    return charge.user, group, charge.vc, charge.class_name, leaf_type
