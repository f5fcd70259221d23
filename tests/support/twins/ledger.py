"""The ledger in memory, for tests: the same answers as Postgres, computed in the simplest way.

Postgres keeps running sums. This ledger adds up all past and live charges for every answer, so that
a mistake in the sums of Postgres shows as a difference between the two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from policy.errors import BackendError, ConflictError
from policy.quotas.charge import Charge, CpuAndMemory, find_exceeded
from policy.quotas.limits import Exceeded, Limit, Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.submission import ClassName, GangKey
from state.ledger.ledger import (
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
from tests.support.twins import comparisons
from tests.support.twins.ages import KeptAges
from tests.support.twins.sums import days_of, holdings_of, sums_of

_MICROSECOND = timedelta(microseconds=1)
_QUEUED_FOR = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    charge: Charge
    charged_at: datetime
    ended_at: datetime
    is_billed: bool


class MemoryLedger:
    """A Ledger without storage; `is_away` makes it fail like a database that is unavailable."""

    def __init__(
        self, clock: Callable[[], datetime] | None = None, *, ttl_seconds: float = 10.0
    ) -> None:
        self._clock = clock or (lambda: datetime.now(UTC))
        self._ttl = timedelta(seconds=ttl_seconds)
        self._live: dict[GangKey, LiveCharge] = {}
        self._queued: dict[GangKey, tuple[Charge, datetime]] = {}
        self._past: list[_Past] = []
        self._ages = KeptAges()
        self._epochs: dict[str, int] = {}
        self._version = 0
        self.is_away = False

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        """Charge a gang unless a limit would be exceeded."""
        check_storable(charge)
        self._check_available()
        now = self._clock()
        existing = self._live.get(charge.gang)
        if existing is not None:
            return self._existing(existing, charge, now)
        waiting = self._waiting(charge.gang, now)
        if waiting is not None and waiting.decision != charge.decision:
            return Queued(charge=waiting)
        exceeded = tuple(find_exceeded(charge, limits, self.current_usage))
        if exceeded:
            return Refused(exceeded=exceeded)
        if any(live.charge.decision == charge.decision for live in self._live.values()):
            raise ValueError(f"decision {charge.decision} belongs to another gang")
        live = LiveCharge(charge=charge, charged_at=now, expires_at=now + self._ttl)
        self._put(live)
        self._queued.pop(charge.gang, None)
        return Charged(live=live, usage=self._usages(charge))

    async def queue(self, charge: Charge) -> Held | Queued:
        """Record that a gang waits uncharged."""
        check_storable(charge)
        self._check_available()
        now = self._clock()
        existing = self._live.get(charge.gang)
        if existing is not None:
            return Held(live=existing, usage=self._usages(existing.charge))
        kept = self._waiting(charge.gang, now) or charge
        self._queued[charge.gang] = (kept, now + self._ttl)
        return Queued(charge=kept)

    def _waiting(self, gang: GangKey, now: datetime) -> Charge | None:
        charge, expires_at = self._queued.get(gang, (None, now))
        return charge if expires_at > now else None

    async def resize(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Change the leaf cells of a charged gang."""
        existing = self._live.get(live.gang)
        if existing is None:
            return await self.charge(live.resized(leaf_count), limits=limits)
        self._check_available()
        if existing.charge != live:
            return Held(live=existing, usage=self._usages(existing.charge))
        places = existing.charge.places if leaf_count >= live.leaf_count else 0
        grown = replace(existing.charge.resized(leaf_count), places=places)
        return self._replace(existing, grown, limits)

    def _replace(
        self, existing: LiveCharge, changed: Charge, limits: Sequence[Limit]
    ) -> Charged | Refused:
        """Put another charge in the place of one, unless a limit would be exceeded."""
        if exceeded := self._find_exceeded(changed, limits):
            return Refused(exceeded=exceeded)
        self._end(changed.gang, is_billed=True)
        now = max(self._clock(), existing.charged_at)
        self._put(LiveCharge(charge=changed, charged_at=now, expires_at=existing.expires_at))
        return Charged(live=self._live[changed.gang], usage=self._usages(changed))

    def _find_exceeded(self, changed: Charge, limits: Sequence[Limit]) -> tuple[Exceeded, ...]:
        # The hours that the gang has used count; its present leaf cells must not count twice.
        beside = list(find_exceeded(changed, limits, self.current_usage))
        existing = self._live.pop(changed.gang)
        without = list(find_exceeded(changed, limits, self.current_usage))
        self._live[changed.gang] = existing
        return comparisons.exceeded_by_change(limits, beside=beside, without=without)

    async def add(
        self, live: Charge, more: CpuAndMemory, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Add CPU and memory to the charge of a gang."""
        existing = self._live.get(live.gang)
        if existing is None:
            return await self.charge(live.with_more(more), limits=limits)
        self._check_available()
        if not comparisons.is_of(existing.charge, live):
            return Held(live=existing, usage=self._usages(existing.charge))
        grown = existing.charge.with_more(more)
        if exceeded := self._find_exceeded(grown, limits):
            return Refused(exceeded=exceeded)
        self._put(replace(existing, charge=grown))
        return Charged(live=self._live[live.gang], usage=self._usages(grown))

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
        self._fence(term)
        existing = self._live.get(live.gang)
        if existing is None:
            return None
        if existing.charge != live or existing.charge.rises_to is None:
            return Held(live=existing, usage=self._usages(existing.charge))
        raised = replace(
            existing.charge,
            class_name=class_name,
            is_high=is_high,
            rises_to=None,
            raised_from=existing.charge.class_name,
        )
        return self._replace(existing, raised, limits)

    async def join(
        self, live: Charge, leaf_count: int, *, limits: Sequence[Limit] = ()
    ) -> ChargeAnswer:
        """Use a place of the charge for a new member, or else add leaf cells."""
        existing = self._live.get(live.gang)
        live = existing.charge if existing and comparisons.is_of(existing.charge, live) else live
        taken = 1 if live.leaf_count_each is None else leaf_count
        if existing is None or existing.charge != live or live.places < taken:
            grown = live.leaf_count + leaf_count
            return await self.resize(replace(live, places=0), grown, limits=limits)
        self._check_available()
        left = replace(existing.charge, places=existing.charge.places - taken)
        self._live[live.gang] = replace(existing, charge=left)
        return self._existing(self._live[live.gang], left, self._clock())

    def _existing(self, existing: LiveCharge, charge: Charge, now: datetime) -> ChargeAnswer:
        if existing.expires_at is not None and existing.expires_at <= now:
            existing = replace(existing, expires_at=now + self._ttl)
            self._live[charge.gang] = existing
        answer = Charged if existing.charge == charge else Held
        return answer(live=existing, usage=self._usages(existing.charge))

    async def confirm(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """Keep the charges of gangs whose pods appeared."""
        self._fence(term)
        found = frozenset(gangs) & self._live.keys()
        for gang in found:
            self._live[gang] = replace(self._live[gang], expires_at=None)
        for gang in frozenset(gangs) & self._queued.keys():
            self._queued[gang] = (self._queued[gang][0], self._clock() + _QUEUED_FOR)
        return found

    async def release(self, gangs: Sequence[GangKey], *, term: LeaderTerm) -> frozenset[GangKey]:
        """End the charges of gangs whose last pod has ended."""
        self._fence(term)
        found = frozenset(gangs) & self._live.keys()
        for gang in found:
            self._end(gang, is_billed=True)
        for gang in gangs:
            self._queued.pop(gang, None)
        return found

    async def expire(self, *, term: LeaderTerm) -> tuple[Charge, ...]:
        """End charges that were not confirmed in time."""
        self._fence(term)
        now = self._clock()
        over = [
            (live.expires_at, gang)
            for gang, live in self._live.items()
            if live.expires_at is not None and live.expires_at <= now
        ]
        gangs = [gang for _, gang in sorted(over)[:MOST_EXPIRED]]
        return tuple(self._end(gang, is_billed=False) for gang in sorted(gangs))

    async def reconcile(
        self,
        existing: Sequence[Charge],
        *,
        term: LeaderTerm,
        grace_seconds: float = 30.0,
        seen: Sequence[LiveCharge] = (),
    ) -> LedgerDrift:
        """Make the charges match the gangs that have pods."""
        self._fence(term)
        known = {live.charge.gang: live for live in seen}
        wanted = {charge.gang: charge for charge in choose_storable(existing)}
        grown_at = self._clock() - timedelta(seconds=grace_seconds)
        gone = [
            gang
            for gang, live in self._live.items()
            if gang not in wanted and live.expires_at is None and live.charged_at <= grown_at
        ]
        wrong = [
            gang
            for gang, charge in wanted.items()
            if gang in self._live
            and not comparisons.is_same(self._live[gang].charge, charge)
            and comparisons.is_as_seen(self._live[gang], known.get(gang))
        ]
        for gang in wanted.keys() & self._live.keys():
            self._live[gang] = replace(self._live[gang], expires_at=None)
        released = tuple(self._end(gang, is_billed=True) for gang in sorted(gone))
        corrected = tuple(self._end(gang, is_billed=True) for gang in sorted(wrong))
        new = sorted(wanted.keys() - self._live.keys())
        created = tuple(replace(wanted[gang], places=0) for gang in new)
        for charge in created:
            self._put(LiveCharge(charge=charge, charged_at=self._clock(), expires_at=None))
        return LedgerDrift(released=released, created=created, corrected=corrected)

    async def recount(self, counted: Sequence[Charge], *, term: LeaderTerm) -> int:
        """Set the CPU and memory of charged gangs."""
        self._fence(term)
        found = [
            comparisons.recounted(self._live.get(one.gang), one) for one in choose_storable(counted)
        ]
        changed = [live for live in found if live is not None]
        for live in changed:
            self._put(live)
        return len(changed)

    async def note_reclaimed(
        self, first_asked: Mapping[GangKey, datetime], *, term: LeaderTerm
    ) -> None:
        """Remember since when gangs ask whose pods were ended for others."""
        self._fence(term)
        self._ages.note(first_asked, now=self._clock())

    async def first_asked(self, gangs: Sequence[GangKey]) -> Mapping[GangKey, datetime]:
        """Return since when gangs ask, for those that were reclaimed lately."""
        self._check_available()
        known = self._ages.known(self._clock())
        return {gang: known[gang] for gang in gangs if gang in known}

    async def find(self, gang: GangKey, *, scope: Scope) -> KnownGang:
        """Return the decision about a gang, and what a scope holds."""
        self._check_available()
        live = self._live.get(gang)
        queued = None if live else self._waiting(gang, self._clock())
        return KnownGang(live=live, queued=queued, usage=self.current_usage(scope))

    async def charges(self) -> tuple[LiveCharge, ...]:
        """Return all live charges, sorted by gang."""
        self._check_available()
        return tuple(self._live[gang] for gang in sorted(self._live))

    async def charges_aged(
        self, *, least_seconds: float, most_seconds: float
    ) -> tuple[LiveCharge, ...]:
        """Return live charges that were made or resized within a range of ages."""
        ages = {one: self._clock() - one.charged_at for one in await self.charges()}
        least, most = timedelta(seconds=least_seconds), timedelta(seconds=most_seconds)
        return tuple(one for one, age in ages.items() if least <= age < most)

    async def find_charged(self, gangs: Sequence[GangKey]) -> frozenset[GangKey]:
        """Return the gangs, among those given, that have a live charge."""
        self._check_available()
        return frozenset(gangs) & self._live.keys()

    async def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used in the current day, week and month."""
        self._check_available()
        return self.current_usage(scope)

    async def holdings(self, when: datetime | None = None) -> tuple[Holding, ...]:
        """Return the leaf cells held by each holder now, or at a moment."""
        self._check_available()
        return holdings_of(self._held(when))

    async def days(self, first: date, last: date) -> tuple[DayUse, ...]:
        """Return the leaf-cell-time used on each of these UTC days."""
        self._check_available()
        return tuple(day for day in days_of(self._billed()) if first <= day.day <= last)

    def _check_available(self) -> None:
        if self.is_away:
            raise BackendError("the ledger is unavailable")

    def _fence(self, term: LeaderTerm) -> None:
        self._check_available()
        highest = self._epochs.get(term.leadership, term.epoch)
        if highest > term.epoch:
            raise ConflictError(
                f"epoch {term.epoch} of {term.leadership} has ended: epoch {highest} has written"
            )
        self._epochs[term.leadership] = term.epoch

    def _put(self, live: LiveCharge) -> None:
        self._version += 1
        self._live[live.charge.gang] = live

    def _end(self, gang: GangKey, *, is_billed: bool) -> Charge:
        self._version += 1
        live = self._live.pop(gang)
        ended_at = max(self._clock(), live.charged_at)
        self._past.append(
            _Past(
                charge=live.charge,
                charged_at=live.charged_at,
                ended_at=ended_at,
                is_billed=is_billed,
            )
        )
        return live.charge

    def _held(self, when: datetime | None) -> Iterator[Charge]:
        for live in self._live.values():
            if when is None or live.charged_at <= when:
                yield live.charge
        for past in self._past:
            if when is not None and past.charged_at <= when < past.ended_at:
                yield past.charge

    def _billed(self) -> Iterator[tuple[Charge, datetime, datetime]]:
        now = self._clock()
        for past in self._past:
            if past.is_billed:
                yield past.charge, past.charged_at, past.ended_at
        for live in self._live.values():
            yield live.charge, live.charged_at, max(now, live.charged_at)

    def _usages(self, charge: Charge) -> tuple[ScopeUsage, ...]:
        return tuple(self.current_usage(scope) for scope in charge.scopes)

    def current_usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, even while `is_away` is set."""
        held = [live.charge for live in self._live.values() if scope in live.charge.scopes]
        today = self._clock().astimezone(UTC).date()
        return ScopeUsage(
            scope=scope,
            **sums_of(held),
            overflow=HeldSums(**sums_of([one for one in held if one.rises_to is not None])),
            day_micros=self._micros_since(scope, today),
            week_micros=self._micros_since(scope, today - timedelta(days=today.weekday())),
            month_micros=self._micros_since(scope, today.replace(day=1)),
            total_micros=self._micros_since(scope, date(1970, 1, 1)),
            counted_at=self._clock(),
            version=self._version,
        )

    def _micros_since(self, scope: Scope, first: date) -> int:
        start = datetime.combine(first, time(), UTC)
        return sum(
            charge.leaf_count * max(0, (until - max(since, start)) // _MICROSECOND)
            for charge, since, until in self._billed()
            if scope in charge.scopes and charge.rises_to is None
        )
