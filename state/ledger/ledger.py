"""The port of the ledger: charges, scopes, usage, and the answers to a charge.

A *charge* is one gang's claim to leaf cells. The webhook makes it before it answers the API server.
The extender's leader confirms it when the gang's pods appear, releases it when the last pod has
ended, and expires it if no pod ever appeared. `state.ledger.postgres` implements `Ledger`; tests
have a twin in memory, and one contract suite tests both.

A *scope* names the holder of a sum: a user, a group, or a user within a group. A charge counts in
every scope it belongs to, so checking a limit is one comparison. All limits of a charge are checked
in one atomic step. A charge beyond the quotas of its group (*overflow*) is held like any other, but
uses up no limit of the group; `raise_class` brings it within quota when there is room.

A charge has four possible answers, none of them an exception: `Charged`; `Held`, when the gang has
a charge that differs from the requested one (a gang has one decision); `Queued`, when the gang
waits uncharged by another decision; and `Refused`. BackendError means that the outcome is unknown:
the charge may exist. If it does, it expires, or is confirmed when the pods appear.

Leaf-cell-hours are leaf cells multiplied by the time from charge to release, exact to the
microsecond, summed by UTC day, ISO week and month. An expired charge adds no hours, so requests for
pods that never appear cannot use up the hours of a user.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from policy.quotas.charge import Charge, CpuAndMemory
from policy.quotas.limits import Exceeded, Limit, Scope
from policy.quotas.usage import MICROS_PER_HOUR, ScopeUsage
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName

logger = logging.getLogger(__name__)

MOST_EXPIRED = 1000
"""Charges that one call of `expire` ends."""
AGE_KEPT = timedelta(days=7)
"""How long after its last reclaim the age of a gang is remembered."""
_LARGEST_COUNT = 2**31 - 1
_LONGEST_KEY = 2500
"""Bytes; the limit of a Postgres index page is slightly higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCharge:
    """A charge that counts towards usage."""

    charge: Charge
    charged_at: datetime
    expires_at: datetime | None
    """When it expires unless its pods appear; None once they have appeared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """The charge counts, from now on or since an earlier call with the same decision."""

    live: LiveCharge
    usage: tuple[ScopeUsage, ...]
    """The usage of its scopes, this charge included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing changed: the gang already has a charge that differs from the requested one."""

    live: LiveCharge
    usage: tuple[ScopeUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing changed: the charge would exceed these limits."""

    exceeded: tuple[Exceeded, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """Nothing changed: the gang waits until its quotas allow this charge."""

    charge: Charge


ChargeAnswer = Charged | Held | Queued | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGang:
    """What was decided about a gang, and what a scope held at the same moment."""

    live: LiveCharge | None = None
    queued: Charge | None = None
    """The decision about a gang that waits uncharged."""
    usage: ScopeUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderTerm:
    """A leadership term: only its leader confirms, releases, expires and reconciles charges."""

    leadership: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDrift:
    """The charges that a reconcile changed to match the pods."""

    released: tuple[Charge, ...] = ()
    """Charges that had no pods."""
    created: tuple[Charge, ...] = ()
    """Charges that were missing, and those that replace an entry of `corrected`."""
    corrected: tuple[Charge, ...] = ()
    """Charges that differed from the pods, as they were before."""


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
    """The leaf-cell-time of one holder on one UTC day."""

    day: date
    user: UserName
    group: GroupName | None
    vc: VcName
    class_name: ClassName
    leaf_type: LeafType | None
    leaf_micros: int

    @property
    def hours(self) -> float:
        """The leaf-cell-hours."""
        return self.leaf_micros / MICROS_PER_HOUR


class Ledger(Protocol):
    """The port. Every method raises BackendError if the database does not answer in time."""

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        """Charge a gang unless a limit would be exceeded; all limits are checked in one step.

        Raises ValueError if another gang has a live charge with this decision, or if the charge
        cannot be stored (`check_storable`).
        """

    async def queue(self, charge: Charge) -> Held | Queued:
        """Record that a gang waits uncharged; return the decision that its members follow.

        Like a charge, the record expires unless it is confirmed, and it ends when the gang is
        released, or when the leader charges the gang with the same decision.
        """

    async def resize(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Change the leaf cells of a charged gang; an increase must be within the limits.

        Returns Held if the charge is no longer equal to `live`; the caller then decides again.
        """

    async def join(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Use the charge's `places` for a new member, or else add `leaf_count` leaf cells.

        If the charge has `leaf_count_each`, the member asks for `leaf_count` beyond that number.
        The current size of the charge counts, not that of `live`. Returns Held if the gang has
        another charge, or none that can grow. A call that is repeated may count a member twice.
        """

    async def add(
        self, live: Charge, more: CpuAndMemory, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Add CPU and memory to the charge of a gang, within the limits; its age does not change.

        The current amounts of the charge count, not those of `live`. Returns Held if the gang has
        another charge. A call that is repeated may count a member twice, until the next `recount`.
        """

    async def raise_class(
        self,
        live: Charge,
        class_name: ClassName,
        *,
        is_high: bool,
        limits: Sequence[Limit] = (),
        term: LeaderTerm,
    ) -> Charged | Held | Refused | None:
        """Charge an overflow gang in a higher class, within the limits, in one step.

        Returns Held if the charge is no longer `live`, or no overflow; None if it has ended.
        """

    async def confirm(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """Keep the charges of gangs whose pods appeared; return the gangs that have a charge.

        Every method that takes a term raises ConflictError if a later epoch has written.
        """

    async def release(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """End the charges of gangs whose last pod has ended; return the gangs that had a charge."""

    async def expire(self, *, term: LeaderTerm) -> tuple[Charge, ...]:
        """End charges that were not confirmed in time, at most `MOST_EXPIRED`; return them."""

    async def reconcile(
        self,
        existing: Sequence[Charge],
        *,
        term: LeaderTerm,
        grace_seconds: float = 30.0,
        seen: Sequence[LiveCharge] = (),
    ) -> LedgerDrift:
        """Make the charges match the gangs that have pods; `existing` has one entry for each gang.

        Confirmed charges without pods end once they are older than the grace time. A charge that
        changed since it was `seen` has grown for a pod that the caller does not know yet: it is
        left unchanged. Charges that cannot be stored (`check_storable`) are logged and skipped.
        """

    async def recount(self, counted: Sequence[Charge], *, term: LeaderTerm) -> int:
        """Set the CPU and memory of charged gangs; return how many charges changed.

        A charge whose leaf cells differ from the given one has changed meanwhile, and is left.
        """

    async def note_reclaimed(
        self, first_asked: Mapping[GangKey, datetime], *, term: LeaderTerm
    ) -> None:
        """Remember since when gangs ask whose pods were ended for others; the earliest counts."""

    async def first_asked(self, gangs: Sequence[GangKey]) -> Mapping[GangKey, datetime]:
        """Return since when gangs ask, for those that were reclaimed within `AGE_KEPT`."""

    async def find(self, gang: GangKey, *, scope: Scope) -> KnownGang:
        """Return the decision about a gang, and what a scope holds; nothing changes.

        A live charge is returned even if it has expired, since it counts until it is ended.
        """

    async def charges(self) -> tuple[LiveCharge, ...]:
        """Return all live charges, sorted by gang."""

    async def charges_aged(
        self, *, least_seconds: float, most_seconds: float
    ) -> tuple[LiveCharge, ...]:
        """Return live charges that were made or resized within a range of ages, sorted by gang."""

    async def find_charged(self, gangs: Sequence[GangKey]) -> frozenset[GangKey]:
        """Return the gangs, among those given, that have a live charge."""

    async def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used in the current day, week and month."""

    async def holdings(self, when: datetime | None = None) -> tuple[Holding, ...]:
        """Return the leaf cells of each holder now or at a moment, expired charges included."""

    async def days(self, first: date, last: date) -> tuple[DayUse, ...]:
        """Return the leaf-cell-time used on each of these UTC days."""


def check_storable(charge: Charge) -> None:
    """Raise ValueError for a charge that no ledger can store.

    Checked before a charge joins a batch, so that it cannot make the whole batch fail.
    """
    if not charge.user or charge.group == "":
        raise ValueError(f"gang {charge.gang}: the name of its user or group is empty")
    if not 0 <= charge.leaf_count <= _LARGEST_COUNT:
        raise ValueError(
            f"gang {charge.gang}: {charge.leaf_count} leaf cells are not within 0 and "
            f"{_LARGEST_COUNT}"
        )
    holder = (charge.user, charge.group or "", charge.vc, charge.class_name, charge.leaf_type or "")
    for key in ((charge.gang.namespace, charge.gang.stored_name), holder):
        length = sum(len(name.encode(errors="replace")) for name in key)
        if length > _LONGEST_KEY:
            raise ValueError(
                f"the names of a gang or of its holder have {length} bytes, at most {_LONGEST_KEY} "
                "can be stored"
            )


def choose_storable(charges: Iterable[Charge]) -> list[Charge]:
    """Return the charges that can be stored, so that one bad charge does not block the others."""
    return [charge for charge in charges if _is_storable(charge)]


def _is_storable(charge: Charge) -> bool:
    try:
        check_storable(charge)
    except ValueError as error:
        logger.error(
            "gang cannot be charged", extra={"gang": str(charge.gang), "error": str(error)}
        )
        return False
    return True
