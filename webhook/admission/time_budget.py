"""How long one review may take, whoever is waited for: the ledger, the API server, or a turn.

The API server holds a user's request while we think, and refuses or lets through whatever comes too
late. So a review has one budget, which all that it waits for share, far below what it is given:
what has not come by then is done without. Work outside of a review has a budget of its own from
the moment at which it waits.
"""

import asyncio
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from policy.errors import BackendError, RequestError

REVIEW_SECONDS: Final = 0.2
KUBE_SECONDS: Final = 0.08
"""The part of it that the API server can use up: what is left is enough for a ledger that works."""
_SHARE: Final = 0.25
"""Of what the API server says it will wait: it rounds up to whole seconds."""
_TIMEOUT: Final = "query parameter timeout"
_SPAN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_UNITS: Final = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_ends_at: ContextVar[float] = ContextVar("review ends at")


class TooBusyError(BackendError):
    """Time ran out, and not because of the ledger: it need not be left alone."""


def parse_timeout(text: str | None) -> float:
    """Read what the API server says, such as `3s`: the seconds that a review may take.

    Raises RequestError for what is no duration as Go writes it.
    """
    if text is None:
        return REVIEW_SECONDS
    spans = _SPAN.findall(text)
    if not spans or "".join(number + unit for number, unit in spans) != text:
        raise RequestError.at(_TIMEOUT, "must be a duration such as 3s")
    told = sum(float(number) * _UNITS[unit] for number, unit in spans)
    return min(REVIEW_SECONDS, told * _SHARE)


@contextmanager
def spending(seconds: float) -> Iterator[None]:
    """Let everything that is waited for in the body share so many seconds."""
    token = _ends_at.set(asyncio.get_running_loop().time() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(token)


def within_budget(most_seconds: float = math.inf) -> asyncio.Timeout:
    """Limit what is waited for by what is left, and by that; TimeoutError when it is over."""
    now = asyncio.get_running_loop().time()
    return asyncio.timeout_at(min(now + most_seconds, _ends_at.get(now + REVIEW_SECONDS)))
