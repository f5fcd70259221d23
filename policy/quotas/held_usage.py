"""What users and groups hold, and have used, when the past is played again: a ledger in memory.

Leaf-cell-time counts as in the ledger: that within quota, in periods of UTC. Before the play
nothing was held and nothing was used. A play makes ten thousands of changes, so an account is
changed in place.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from policy.quotas.charge import Charge
from policy.quotas.limits import Measure, Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.submission import LeafType

_DAY_SECONDS: Final = 86_400
_MICROS: Final = 1_000_000
_PERIODS: Final = 3
_TIMES: Final = {
    Measure.HOURS_DAY: 0,
    Measure.HOURS_WEEK: 1,
    Measure.HOURS_MONTH: 2,
    Measure.HOURS_TOTAL: 3,
}


class _Begins(NamedTuple):
    """When the periods of a moment began, in seconds since 1970."""

    day: int
    week: int
    month: int


@lru_cache(maxsize=512)
def _begins(day: int) -> _Begins:
    """Return the beginnings of the periods of a day, given in days since 1970."""
    date = datetime.fromtimestamp(day * _DAY_SECONDS, UTC)
    monday, first = date - timedelta(days=date.weekday()), date.replace(day=1)
    return _Begins(day * _DAY_SECONDS, int(monday.timestamp()), int(first.timestamp()))


class _Sums:
    """What is held."""

    __slots__ = ("by_type", "cells", "cpu", "gangs", "high", "memory")

    def __init__(self) -> None:
        self.cells = self.high = self.gangs = self.cpu = self.memory = 0
        self.by_type: dict[LeafType, int] = {}

    def add(self, charge: Charge, sign: int) -> None:
        """Count a charge, or do not count it any more."""
        cells = sign * charge.leaf_count
        self.cells += cells
        self.high += cells if charge.is_high else 0
        self.gangs += sign
        self.cpu += sign * charge.cpu_millis
        self.memory += sign * charge.memory_bytes
        if charge.leaf_type is not None:
            self.by_type[charge.leaf_type] = self.by_type.get(charge.leaf_type, 0) + cells

    def amount(self, measure: Measure, leaf_type: LeafType | None) -> int:
        """Return what counts towards a limit."""
        match measure:
            case Measure.LEAF_CELLS:
                return self.cells
            case Measure.LEAF_CELLS_HIGH:
                return self.high
            case Measure.LEAF_CELLS_LOW:
                return self.cells - self.high
            case Measure.LEAF_CELLS_OF_TYPE:
                return self.by_type.get(leaf_type or LeafType(""), 0)
            case Measure.GANGS:
                return self.gangs
            case Measure.CPU_MILLIS:
                return self.cpu
            case _:
                return self.memory

    def freeze(self) -> HeldSums:
        """Return the sums as they are now."""
        return HeldSums(
            leaf_cells=self.cells,
            leaf_cells_high=self.high,
            gangs=self.gangs,
            by_leaf_type=dict(self.by_type),
            cpu_millis=self.cpu,
            memory_bytes=self.memory,
        )


class Account:
    """What one scope holds and has used, at the moment it was asked for."""

    __slots__ = ("_counted", "_is_group", "_times", "beyond", "held")

    def __init__(self, scope: Scope, moment: float) -> None:
        self.held, self.beyond = _Sums(), _Sums()
        self._is_group = scope.group is not None
        self._counted = moment
        self._times = [0, 0, 0, 0]

    def used(self, measure: Measure, leaf_type: LeafType | None = None) -> int:
        """Return what counts towards a limit, as `ScopeUsage.used` does."""
        if measure.is_hours:
            return self._times[_TIMES[measure]]
        beyond = self.beyond.amount(measure, leaf_type) if self._is_group else 0
        return self.held.amount(measure, leaf_type) - beyond

    def advance(self, moment: float) -> None:
        """Count leaf-cell-time until a moment."""
        counted, times = self._counted, self._times
        if moment <= counted:
            return
        within = self.held.cells - self.beyond.cells
        begins = _begins(int(moment // _DAY_SECONDS))
        for place, begin in enumerate(begins):
            if begin > counted:
                times[place] = within * round((moment - begin) * _MICROS)
            elif within:
                times[place] += within * round((moment - counted) * _MICROS)
        times[_PERIODS] += within * round((moment - counted) * _MICROS)
        self._counted = moment

    def add(self, charge: Charge, sign: int) -> None:
        """Count a charge, or do not count it any more."""
        self.held.add(charge, sign)
        if charge.rises_to is not None:
            self.beyond.add(charge, sign)

    def freeze(self, scope: Scope) -> ScopeUsage:
        """Return the account as it is now."""
        held, times = self.held, self._times
        return ScopeUsage(
            scope=scope,
            leaf_cells=held.cells,
            leaf_cells_high=held.high,
            gangs=held.gangs,
            by_leaf_type=dict(held.by_type),
            cpu_millis=held.cpu,
            memory_bytes=held.memory,
            overflow=self.beyond.freeze(),
            day_micros=times[0],
            week_micros=times[1],
            month_micros=times[2],
            total_micros=times[_PERIODS],
            counted_at=datetime.fromtimestamp(self._counted, UTC),
        )


class HeldUsage:
    """The charges in force, as sums by scope."""

    def __init__(self, *, counts_time: bool = True) -> None:
        """`counts_time` counts leaf-cell-time, which only limits of hours need."""
        self._counts_time = counts_time
        self._accounts: dict[Scope, Account] = {}
        self.clock = 0.0
        """The moment of the next question or change, in seconds since 1970."""

    def of(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds, and has used until now."""
        return self.account(scope).freeze(scope)

    def account(self, scope: Scope) -> Account:
        """Return the account of a scope as of now; it changes with the next charge."""
        known = self._accounts.get(scope)
        if known is None:
            known = self._accounts[scope] = Account(scope, self.clock)
        if self._counts_time:
            known.advance(self.clock)
        return known

    def charge(self, charge: Charge) -> None:
        """Count a charge."""
        for scope in charge.scopes:
            self.account(scope).add(charge, 1)

    def release(self, charge: Charge) -> None:
        """Do not count a charge any more."""
        for scope in charge.scopes:
            self.account(scope).add(charge, -1)
