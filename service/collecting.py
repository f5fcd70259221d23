"""Python's garbage collector, kept from stopping a service for longer than an answer may take.

Nearly everything that a request makes is freed by counting; what the collector looks for are the
few cycles. By default it looks often, and now and then at everything that was ever imported: tens
of milliseconds in which nobody is answered.
"""

import gc
from typing import Final

_YOUNG_OBJECTS: Final = 10_000
_YOUNG_ROUNDS: Final = 20
_OLD_ROUNDS: Final = 100


def settle_collector() -> None:
    """Leave out what there is now from all later looks, and look less often. For once at start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_ROUNDS, _OLD_ROUNDS)
