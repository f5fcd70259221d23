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
    assumed = usage.assumed
    for first in range(0, len(assumed), _AT_ONCE):
        told = [_charge(ledger, charge) for charge in assumed[first : first + _AT_ONCE]]
        outcomes = await asyncio.gather(*told, return_exceptions=True)
        for failure in outcomes:
            if failure is not None:
                raise failure
    if assumed:
        logger.info("ledger told", extra={"gangs": len(assumed)})


async def _charge(ledger: Ledger, charge: Charge) -> None:
    try:
        await ledger.charge(charge)
    except ValueError as exc:
        extra = {"gang": str(charge.gang), "error": str(exc)}
        logger.warning("gang let in cannot be charged", extra=extra)
