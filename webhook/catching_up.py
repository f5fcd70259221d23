"""Tells a ledger that is back what was let in without it.

The extender's leader does so, too, when it compares the ledger with the pods; but that is half a
minute later, and until then other replicas would not know what this one has let in.
"""

import asyncio
import logging
from typing import Final

from state.ledger import Charge, Ledger
from webhook.admitting import LiveUsage

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Charges that wait together: each has as long as that of a review."""


async def catch_up(ledger: Ledger, usage: LiveUsage) -> None:
    """Charge what only we count, whatever the limits: it was let in. BackendError if it is away."""
    told: set[Charge] = set()
    # What is let in meanwhile is told, too: nobody would once the ledger is used again.
    while missing := [charge for charge in usage.assumed if charge not in told][:_AT_ONCE]:
        charging = [_charge(ledger, charge) for charge in missing]
        for failure in await asyncio.gather(*charging, return_exceptions=True):
            if failure is not None:
                raise failure
        told.update(missing)
    if told:
        logger.info("ledger told", extra={"gangs": len(told)})


async def _charge(ledger: Ledger, charge: Charge) -> None:
    try:
        await ledger.charge(charge)
    except ValueError as exc:
        extra = {"gang": str(charge.gang), "error": str(exc)}
        logger.warning("gang let in cannot be charged", extra=extra)
