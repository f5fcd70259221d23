"""Gangs that were decided lately, for their members that come later.

The ledger knows charged gangs. This memory serves while the ledger is unavailable, and for gangs
that quotas queue, which are not charged. While the ledger answers, gangs that it no longer has are
forgotten soon (`RecentGangCheck`), so that a name used again is a new gang even if the ledger is
unavailable by then.
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
from webhook.ledger_access.breaker import Breaker

logger = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 600.0
_KEPT: Final = 10_000
_CHECK_SECONDS: Final = 1.0
_MOST_CHECKED: Final = 500
"""Per check; those that were checked longest ago come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentGang:
    """How a gang was admitted: charged, or queued for quota."""

    charge: Charge
    is_queued: bool


class RecentGangs:
    """A bounded memory, oldest out first."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._gangs: ExpiringMap[GangKey, RecentGang] = ExpiringMap(
            _KEPT, seconds=_KEPT_SECONDS, monotonic=monotonic
        )

    def find(self, gang: GangKey) -> RecentGang | None:
        """Return how a gang was admitted, unless that was long ago."""
        return self._gangs.get(gang)

    def note(self, charge: Charge, *, is_queued: bool = False) -> None:
        """Remember how a gang was admitted."""
        self._gangs[charge.gang] = RecentGang(charge=charge, is_queued=is_queued)

    def charged(self, most: int) -> list[RecentGang]:
        """Return gangs that should be charged, longest unchecked first."""
        return list(islice((one for one in self._gangs.values() if not one.is_queued), most))

    def note_checked(self, checked: Iterable[RecentGang], *, charged: Collection[GangKey]) -> None:
        """Keep the charged gangs, and forget the others unless they were noted meanwhile."""
        for recent in checked:
            gang = recent.charge.gang
            if self._gangs.get(gang) is not recent:
                continue
            if gang in charged:
                self._gangs[gang] = recent
            else:
                self._gangs.pop(gang)


class RecentGangCheck:
    """Asks the ledger in the background which of the recent gangs it still has."""

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
        # A gang that is not charged in the ledger yet has not ended.
        checked = [one for one in charged if self._assumed.find(one.charge.gang) is None]
        if not checked:
            return
        try:
            found = await self._ledger.find_charged([one.charge.gang for one in checked])
        except BackendError as exc:
            logger.info("recent gangs not checked, will retry", extra={"error": str(exc)})
        else:
            self._recent.note_checked(checked, charged=found)
