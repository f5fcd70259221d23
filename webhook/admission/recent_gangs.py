"""Gangs that were decided lately, for their members that come later.

The ledger knows charged gangs. This memory serves while the ledger is unavailable, and for gangs
that quotas queue, which are not charged. While the ledger answers, gangs that it no longer has are
forgotten soon (`RecentGangCheck`), so that a name used again is a new gang even if the ledger is
unavailable by then.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from typing import Final, NoReturn

from policy.admission.preview import EarlierDecision
from policy.errors import BackendError
from policy.submission import GangKey
from service.memory import ExpiringMap
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Ledger
from webhook.ledger_access.breaker import Breaker

logger = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 600.0
_KEPT: Final = 10_000
_CHECK_SECONDS: Final = 1.0
_MOST_CHECKED: Final = 500
"""Per check; those that were checked longest ago come first."""


class RecentGangs(ExpiringMap[GangKey, EarlierDecision]):
    """A bounded memory, the gang that was noted or checked longest ago out first."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        super().__init__(_KEPT, seconds=_KEPT_SECONDS, monotonic=monotonic)


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
        charged = (one for one in self._recent.values() if not one.is_queued)
        # A gang that is not charged in the ledger yet has not ended.
        checked = [
            one
            for one in islice(charged, _MOST_CHECKED)
            if self._assumed.find(one.charge.gang) is None
        ]
        if not checked:
            return
        try:
            found = await self._ledger.find_charged([one.charge.gang for one in checked])
        except BackendError as exc:
            logger.info("recent gangs not checked, will retry", extra={"error": str(exc)})
            return
        for one in checked:
            gang = one.charge.gang
            if self._recent.get(gang) is not one:
                continue  # noted again meanwhile
            self._recent.pop(gang)
            if gang in found:
                self._recent[gang] = one
