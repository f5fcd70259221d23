"""Charges that only this process counts: what was let in while the ledger did not answer.

    untold    the ledger has not heard of it
    told      it has, and whoever looks next finds it there: then it is forgotten here
    nameless  the oldest, when there are too many: which gangs they are is forgotten, not how much

So what is let in counts through an outage of any length, memory is bounded, and what a scope holds
is known at once however many there are. A charge that the ledger still does not have some time
after it is back was for pods that never came, or those who compare it with the pods have charged
it: it counts no longer.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

from policy.quotas.limits import Scope
from policy.submission import GangKey, LeafType
from state.ledger.ledger import Charge, ScopeUsage

_MOST: Final = 20_000
"""About 1 kB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assumed:
    charge: Charge
    held: int
    """Leaf cells of it that the ledger counts already."""
    since: float


@dataclass(slots=True)
class _Sum:
    """What the assumed charges of one scope hold together."""

    leaf_cells: int = 0
    leaf_cells_high: int = 0
    gangs: int = 0
    by_leaf_type: dict[LeafType, int] = field(default_factory=dict)

    def add(self, assumed: _Assumed, *, times: int = 1) -> None:
        charge = assumed.charge
        more = (charge.leaf_count - assumed.held) * times
        self.leaf_cells += more
        self.leaf_cells_high += more * charge.is_high
        self.gangs += 0 if assumed.held else times
        if charge.leaf_type is not None:
            self.by_leaf_type[charge.leaf_type] = self.by_leaf_type.get(charge.leaf_type, 0) + more

    def add_to(self, usage: ScopeUsage) -> ScopeUsage:
        by_type = dict(usage.by_leaf_type)
        for leaf_type, leaf_cells in self.by_leaf_type.items():
            by_type[leaf_type] = by_type.get(leaf_type, 0) + leaf_cells
        return replace(
            usage,
            leaf_cells=usage.leaf_cells + self.leaf_cells,
            leaf_cells_high=usage.leaf_cells_high + self.leaf_cells_high,
            gangs=usage.gangs + self.gangs,
            by_leaf_type=by_type,
        )


class AssumedCharges:
    """What this process let in and the ledger may not have heard of, oldest first."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._untold: OrderedDict[GangKey, _Assumed] = OrderedDict()
        self._told: OrderedDict[GangKey, _Assumed] = OrderedDict()
        self._sums: dict[Scope, _Sum] = {}
        self._nameless: OrderedDict[Scope, _Sum] = OrderedDict()
        self._nameless_since = 0.0

    def __len__(self) -> int:
        """Those whose gangs are known."""
        return len(self._untold) + len(self._told)

    def find(self, gang: GangKey) -> Charge | None:
        """Return what is assumed of a gang."""
        assumed = self._untold.get(gang) or self._told.get(gang)
        return None if assumed is None else assumed.charge

    def add(self, charge: Charge, *, held: int = 0, now: float) -> None:
        """Count a charge, but for what the ledger counts of it; what was assumed before goes."""
        before = self._untold.get(charge.gang) or self._told.get(charge.gang)
        self.forget(charge.gang)
        held = held if before is None else before.held
        assumed = _Assumed(charge=charge, held=held, since=now)
        self._untold[charge.gang] = assumed
        self._weigh(assumed, times=1)
        if len(self) > self._most:
            self._forget_name()

    def forget(self, gang: GangKey) -> None:
        """Do not count a charge any more."""
        assumed = self._untold.pop(gang, None) or self._told.pop(gang, None)
        if assumed is not None:
            self._weigh(assumed, times=-1)

    def add_to(self, usage: ScopeUsage) -> ScopeUsage:
        """Return the usage of a scope with what is assumed of it."""
        for sums in (self._sums, self._nameless):
            if (found := sums.get(usage.scope)) is not None:
                usage = found.add_to(usage)
        return usage

    def untold(self, most: int) -> list[Charge]:
        """Return the oldest that the ledger has not heard of."""
        return [assumed.charge for assumed in islice(self._untold.values(), most)]

    def note_told(self, charges: Iterable[Charge]) -> None:
        """The ledger has heard of these; one that has grown meanwhile is to be told again."""
        for charge in charges:
            assumed = self._untold.get(charge.gang)
            if assumed is not None and assumed.charge == charge:
                self._told[charge.gang] = self._untold.pop(charge.gang)

    def expected(self, most: int) -> list[GangKey]:
        """Return gangs that are to be forgotten once the ledger has them; those first it must have.

        One whose charge has grown is not among them before the ledger has heard of that.
        """
        new = (gang for gang, assumed in self._untold.items() if not assumed.held)
        return list(islice(chain(self._told, new), most))

    def drop_older(self, too_old: float) -> None:
        """Forget what was assumed before a moment: the ledger had time enough to get it."""
        for assumed in (self._told, self._untold):
            while assumed and (first := next(iter(assumed.values()))).since < too_old:
                self.forget(first.charge.gang)
        if self._nameless and self._nameless_since < too_old:
            self._nameless.clear()

    def _weigh(self, assumed: _Assumed, *, times: int) -> None:
        for scope in assumed.charge.scopes:
            total = self._sums.setdefault(scope, _Sum())
            total.add(assumed, times=times)
            if not total.leaf_cells and not total.gangs:
                del self._sums[scope]

    def _forget_name(self) -> None:
        """Count the oldest one by its scopes only; of too many scopes, forget the oldest."""
        _, oldest = (self._told or self._untold).popitem(last=False)
        self._weigh(oldest, times=-1)
        self._nameless_since = oldest.since
        for scope in oldest.charge.scopes:
            self._nameless.setdefault(scope, _Sum()).add(oldest)
        while len(self._nameless) > self._most:
            self._nameless.popitem(last=False)
