"""Python's garbage collector: one policy for every process.

Nearly everything that a request makes is freed by reference counting; the collector looks for the
few cycles. By default it looks often, and now and then at every object there is: for tens of
milliseconds, or at thousands of nodes a third of a second, no request is answered.
"""

import gc
from typing import Final

_YOUNG_OBJECTS: Final = 10_000
_YOUNG_ROUNDS: Final = 5
_OLD_ROUNDS: Final = 1_000


def settle_collector() -> None:
    """Collect once, leave the objects that exist out of later collections, and collect less often.

    A service calls it when it has built what stays, before it is ready. It may be called again:
    only objects that were made since the last call take time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_ROUNDS, _OLD_ROUNDS)
