"""What this process decided about gangs lately, for their members that are still to come.

The ledger knows gangs that were charged. This knows them too while the ledger is away, and those
that quotas queue, which are not charged at all.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policy.submission import GangKey
from state.ledger import Charge

_KEPT_SECONDS: Final = 600.0
_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """How a gang was let in: charged, or to be charged when it fits."""

    charge: Charge
    is_queued: bool
    since: float


class RecentGangs:
    """A bounded memory, oldest out first."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._gangs: OrderedDict[GangKey, Recent] = OrderedDict()

    def find(self, gang: GangKey) -> Recent | None:
        """Return how a gang was let in, unless that was long ago."""
        found = self._gangs.get(gang)
        is_old = found is not None and found.since < self._monotonic() - _KEPT_SECONDS
        return None if is_old else found

    def note(self, charge: Charge, *, is_queued: bool = False) -> None:
        """Remember how a gang was let in."""
        recent = Recent(charge=charge, is_queued=is_queued, since=self._monotonic())
        self._gangs[charge.gang] = recent
        self._gangs.move_to_end(charge.gang)
        while len(self._gangs) > _KEPT:
            self._gangs.popitem(last=False)
