"""What was decided about gangs, for their members that are still to come.

The ledger knows gangs that were charged. This knows them too while the ledger is away, and those
that quotas queue, which are not charged at all. While the ledger answers, those that it does not
have any more are forgotten soon after (`RecentCheck`): so a name that was used before is a new
gang, though the ledger be away when it is used again.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NoReturn

from policy.errors import BackendError
from policy.submission import GangKey
from service.memory import ExpiringMap
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charge, Ledger
from webhook.admission.breaker import Breaker

logger = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 600.0
_KEPT: Final = 10_000
_CHECK_SECONDS: Final = 1.0
_MOST_CHECKED: Final = 500
"""At once. Of more, those that were checked longest ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """How a gang was let in: charged, or to be charged when it fits."""

    charge: Charge
    is_queued: bool


class RecentGangs:
    """A bounded memory, oldest out first."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._gangs: ExpiringMap[GangKey, Recent] = ExpiringMap(
            _KEPT, seconds=_KEPT_SECONDS, monotonic=monotonic
        )

    def find(self, gang: GangKey) -> Recent | None:
        """Return how a gang was let in, unless that was long ago."""
        return self._gangs.get(gang)

    def note(self, charge: Charge, *, is_queued: bool = False) -> None:
        """Remember how a gang was let in."""
        self._gangs[charge.gang] = Recent(charge=charge, is_queued=is_queued)

    def charged(self, most: int) -> list[Recent]:
        """Return those that are said to be charged, longest ago first."""
        return list(islice((one for one in self._gangs.values() if not one.is_queued), most))

    def note_checked(self, checked: Iterable[Recent], *, charged: Collection[GangKey]) -> None:
        """Keep those that are charged, and forget the others unless they were noted meanwhile."""
        for recent in checked:
            gang = recent.charge.gang
            if self._gangs.get(gang) is not recent:
                continue
            if gang in charged:
                self._gangs[gang] = recent
            else:
                self._gangs.pop(gang)


class RecentCheck:
    """Asks the ledger, beside the reviews, which of the recent gangs it still has."""

    def __init__(
        self, recent: RecentGangs, *, ledger: Ledger, assumed: AssumedCharges, breaker: Breaker
    ) -> None:
        self._recent = recent
        self._ledger = ledger
        self._assumed = assumed
        self._breaker = breaker

    async def run(self) -> NoReturn:
        """Ask every second while the ledger answers, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if self._breaker.is_closed:
                await self.check()

    async def check(self) -> None:
        """Ask once; without an answer nothing changes."""
        charged = self._recent.charged(_MOST_CHECKED)
        # Of what it has not heard of yet, the ledger cannot tell that it has ended.
        checked = [one for one in charged if self._assumed.find(one.charge.gang) is None]
        if not checked:
            return
        try:
            found = await self._ledger.find_charged([one.charge.gang for one in checked])
        except BackendError as exc:
            logger.info("recent gangs not checked, will retry", extra={"error": str(exc)})
        else:
            self._recent.note_checked(checked, charged=found)
