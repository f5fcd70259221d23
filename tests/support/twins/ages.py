"""The ages of gangs that were reclaimed, in memory: a part of the ledger's twin."""

from collections.abc import Mapping
from datetime import datetime

from policy.submission import GangKey
from state.ledger.ledger import AGE_KEPT


class KeptAges:
    """Since when gangs ask, and when each was last reclaimed."""

    def __init__(self) -> None:
        self._ages: dict[GangKey, tuple[datetime, datetime]] = {}

    def note(self, first_asked: Mapping[GangKey, datetime], *, now: datetime) -> None:
        """Gangs were reclaimed; the earliest time of each counts."""
        known = self.known(now)
        for gang, asked in first_asked.items():
            self._ages[gang] = (min(asked, known.get(gang, asked)), now)

    def known(self, now: datetime) -> dict[GangKey, datetime]:
        """Return the ages that are not too old to count."""
        ages = self._ages.items()
        return {gang: asked for gang, (asked, at) in ages if at > now - AGE_KEPT}
