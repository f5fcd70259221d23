"""Charge what was admitted while the ledger was unavailable.

The extender's leader does so too when it compares the ledger with the pods, but half a minute
later; until then other replicas would not know what this one has admitted.
"""

import asyncio
import logging
from typing import Final

from policy.quotas.charge import Charge
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charged, Held, Ledger

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Charges per batch, which wait for the ledger together."""
_ATTEMPTS: Final = 3


async def catch_up(ledger: Ledger, assumed: AssumedCharges) -> None:
    """Charge what only this replica counts, beyond any limit. Raises BackendError."""
    charged = 0
    # Includes what is admitted meanwhile: no later call would charge it.
    while missing := assumed.unsent(_AT_ONCE):
        charging = [_charge(ledger, charge) for charge in missing]
        for failure in await asyncio.gather(*charging, return_exceptions=True):
            if failure is not None:
                raise failure
        assumed.note_sent(missing)
        charged += len(missing)
    if charged:
        logger.info("gangs charged after an outage", extra={"gangs": charged})


async def _charge(ledger: Ledger, charge: Charge) -> None:
    try:
        answer = await ledger.charge(charge)
        for _ in range(_ATTEMPTS):
            # Its first members may be charged already, perhaps by another replica.
            held = answer.live.charge if isinstance(answer, Charged | Held) else charge
            if held.leaf_count >= charge.leaf_count:
                return
            answer = await ledger.resize(held, charge.leaf_count)
    except ValueError as exc:
        extra = {"gang": str(charge.gang), "error": str(exc)}
        logger.warning("admitted gang cannot be charged", extra=extra)
