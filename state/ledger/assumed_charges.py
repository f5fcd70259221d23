"""Charges that only this process counts: gangs admitted while Postgres was unavailable.

    unsent   the ledger does not have the charge yet
    sent     the ledger has it; the entry is dropped when usage is next read from Postgres
    unnamed  the oldest, beyond a limit: their sums are kept, the names of their gangs are not

So admitted gangs count for the whole outage, memory is bounded, and the sum of a scope is known at
once. If a charge is still not in the ledger some time after Postgres is back, its pods never
appeared, or the leader charged it while reconciling: the entry is dropped.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Final

from policy.quotas.charge import Charge, CpuAndMemory
from policy.quotas.limits import Scope
from policy.quotas.usage import HeldSums, ScopeUsage
from policy.submission import GangKey, LeafType

_MOST: Final = 20_000
"""About 1 kB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assumed:
    charge: Charge
    held: Charge | None
    """What the ledger already counts of the gang."""
    since: float


@dataclass(slots=True)
class _Sum:
    """The sum of the assumed charges of one scope, or of those beyond quota."""

    leaf_cells: int = 0
    leaf_cells_high: int = 0
    gangs: int = 0
    by_leaf_type: dict[LeafType, int] = field(default_factory=dict)
    cpu_millis: int = 0
    memory_bytes: int = 0

    def add(self, assumed: _Assumed, *, times: int) -> None:
        charge, held = assumed.charge, assumed.held
        had = CpuAndMemory() if held is None else held.cpu_and_memory
        more = (charge.leaf_count - (0 if held is None else held.leaf_count)) * times
        self.leaf_cells += more
        self.leaf_cells_high += more * charge.is_high
        self.gangs += times if held is None else 0
        self.cpu_millis += (charge.cpu_millis - had.cpu_millis) * times
        self.memory_bytes += (charge.memory_bytes - had.memory_bytes) * times
        if charge.leaf_type is not None:
            self.by_leaf_type[charge.leaf_type] = self.by_leaf_type.get(charge.leaf_type, 0) + more

    def added_to(self, sums: HeldSums) -> dict[str, Any]:
        """Return the fields of sums with this sum added."""
        by_type = dict(sums.by_leaf_type)
        for leaf_type, leaf_cells in self.by_leaf_type.items():
            by_type[leaf_type] = by_type.get(leaf_type, 0) + leaf_cells
        return {
            "leaf_cells": sums.leaf_cells + self.leaf_cells,
            "leaf_cells_high": sums.leaf_cells_high + self.leaf_cells_high,
            "gangs": sums.gangs + self.gangs,
            "by_leaf_type": by_type,
            "cpu_millis": sums.cpu_millis + self.cpu_millis,
            "memory_bytes": sums.memory_bytes + self.memory_bytes,
        }


@dataclass(slots=True)
class _Sums:
    """The sums of the assumed charges of one scope."""

    total: _Sum = field(default_factory=_Sum)
    overflow: _Sum = field(default_factory=_Sum)

    @property
    def is_empty(self) -> bool:
        total = self.total
        return not (total.leaf_cells or total.gangs or total.cpu_millis or total.memory_bytes)

    def add(self, assumed: _Assumed, *, times: int = 1) -> None:
        self.total.add(assumed, times=times)
        if assumed.charge.rises_to is not None:
            self.overflow.add(assumed, times=times)

    def add_to(self, usage: ScopeUsage) -> ScopeUsage:
        overflow = replace(usage.overflow, **self.overflow.added_to(usage.overflow))
        return replace(usage, overflow=overflow, **self.total.added_to(usage))


class AssumedCharges:
    """Charges of this process that the ledger may not have, oldest first."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._unsent: OrderedDict[GangKey, _Assumed] = OrderedDict()
        self._sent: OrderedDict[GangKey, _Assumed] = OrderedDict()
        self._sums: dict[Scope, _Sums] = {}
        self._unnamed: OrderedDict[Scope, _Sums] = OrderedDict()
        self._unnamed_since = 0.0

    def __len__(self) -> int:
        """The charges whose gangs are known by name."""
        return len(self._unsent) + len(self._sent)

    def find(self, gang: GangKey) -> Charge | None:
        """Return the assumed charge of a gang."""
        assumed = self._unsent.get(gang) or self._sent.get(gang)
        return None if assumed is None else assumed.charge

    def add(self, charge: Charge, *, held: Charge | None = None, now: float) -> None:
        """Count a charge except what is `held`; it replaces an earlier charge of the gang."""
        before = self._unsent.get(charge.gang) or self._sent.get(charge.gang)
        self.forget(charge.gang)
        held = held if before is None else before.held
        assumed = _Assumed(charge=charge, held=held, since=now)
        self._unsent[charge.gang] = assumed
        self._change_sums(assumed, times=1)
        if len(self) > self._most:
            self._drop_oldest_name()

    def forget(self, gang: GangKey) -> None:
        """Stop counting the charge of a gang."""
        assumed = self._unsent.pop(gang, None) or self._sent.pop(gang, None)
        if assumed is not None:
            self._change_sums(assumed, times=-1)

    def add_to(self, usage: ScopeUsage) -> ScopeUsage:
        """Return the usage of a scope with its assumed charges added."""
        for sums in (self._sums, self._unnamed):
            if (found := sums.get(usage.scope)) is not None:
                usage = found.add_to(usage)
        return usage

    def unsent(self, most: int) -> list[Charge]:
        """Return the oldest charges that the ledger does not have."""
        return [assumed.charge for assumed in islice(self._unsent.values(), most)]

    def note_sent(self, charges: Iterable[Charge]) -> None:
        """Note that the ledger has these charges; one that has grown since must be sent again."""
        for charge in charges:
            assumed = self._unsent.get(charge.gang)
            if assumed is not None and assumed.charge == charge:
                self._sent[charge.gang] = self._unsent.pop(charge.gang)

    def expected(self, most: int) -> list[GangKey]:
        """Return gangs to drop once the ledger has them, those that were sent first.

        A gang whose charge has grown is left out until the larger charge was sent.
        """
        new = (gang for gang, assumed in self._unsent.items() if assumed.held is None)
        return list(islice(chain(self._sent, new), most))

    def drop_older(self, too_old: float) -> None:
        """Drop charges that were assumed before a moment."""
        for assumed in (self._sent, self._unsent):
            while assumed and (first := next(iter(assumed.values()))).since < too_old:
                self.forget(first.charge.gang)
        if self._unnamed and self._unnamed_since < too_old:
            self._unnamed.clear()

    def _change_sums(self, assumed: _Assumed, *, times: int) -> None:
        for scope in assumed.charge.scopes:
            total = self._sums.setdefault(scope, _Sums())
            total.add(assumed, times=times)
            if total.is_empty:
                del self._sums[scope]

    def _drop_oldest_name(self) -> None:
        """Keep the oldest charge as a part of its scopes' sums only; bound the scopes too."""
        _, oldest = (self._sent or self._unsent).popitem(last=False)
        self._change_sums(oldest, times=-1)
        self._unnamed_since = oldest.since
        for scope in oldest.charge.scopes:
            self._unnamed.setdefault(scope, _Sums()).add(oldest)
        while len(self._unnamed) > self._most:
            self._unnamed.popitem(last=False)
