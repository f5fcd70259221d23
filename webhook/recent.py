"""Gangs that this process let in while the ledger was away: members that follow get the same."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from policy.submission import GangKey
from state.ledger import Charge

_KEPT_SECONDS: Final = 600.0
_KEPT: Final = 10_000


class RecentGangs:
    """A bounded memory, oldest out first."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._charges: OrderedDict[GangKey, tuple[Charge, float]] = OrderedDict()

    def find(self, gang: GangKey) -> Charge | None:
        """Return how a gang was let in, unless that was long ago."""
        found = self._charges.get(gang)
        if found is None or found[1] < self._monotonic() - _KEPT_SECONDS:
            return None
        return found[0]

    def note(self, charge: Charge) -> None:
        """Remember how a gang was let in."""
        self._charges[charge.gang] = (charge, self._monotonic())
        self._charges.move_to_end(charge.gang)
        while len(self._charges) > _KEPT:
            self._charges.popitem(last=False)
