"""Tells a ledger that is back what was let in without it.

The extender's leader does so, too, when it compares the ledger with the pods; but that is half a
minute later, and until then other replicas would not know what this one has let in.
"""

import asyncio
import logging
from typing import Final

from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charge, Charged, Held, Ledger

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Charges that wait together: each has as long as that of a review."""
_ATTEMPTS: Final = 3


async def catch_up(ledger: Ledger, assumed: AssumedCharges) -> None:
    """Charge what only we count, whatever the limits: it was let in. BackendError if it is away."""
    told = 0
    # What is let in meanwhile is told, too: nobody would once the ledger is used again.
    while missing := assumed.untold(_AT_ONCE):
        telling = [_tell(ledger, charge) for charge in missing]
        for failure in await asyncio.gather(*telling, return_exceptions=True):
            if failure is not None:
                raise failure
        assumed.note_told(missing)
        told += len(missing)
    if told:
        logger.info("ledger told", extra={"gangs": told})


async def _tell(ledger: Ledger, charge: Charge) -> None:
    try:
        answer = await ledger.charge(charge)
        for _ in range(_ATTEMPTS):
            # Its first members were charged before, or by another replica.
            if not isinstance(answer, Charged | Held) or _covers(answer, charge):
                return
            answer = await ledger.resize(answer.live.charge, charge.leaf_count)
    except ValueError as exc:
        extra = {"gang": str(charge.gang), "error": str(exc)}
        logger.warning("gang let in cannot be charged", extra=extra)


def _covers(answer: Charged | Held, charge: Charge) -> bool:
    return answer.live.charge.leaf_count >= charge.leaf_count
