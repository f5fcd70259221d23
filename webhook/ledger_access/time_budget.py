"""The time budget of one review, shared by everything that it awaits: ledger, API server, turns.

The API server holds a user's request while a review runs, and on a timeout follows the
`failurePolicy`. So a budget is far below the API server's timeout, and the review goes on without
any answer that is still missing when it is spent. Work outside of a review has a budget of its own
from the moment at which it awaits.
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
"""The most of it for calls of the API server; the rest is enough for a healthy ledger."""
_SHARE: Final = 0.25
"""The share of the API server's timeout, which it rounds up to whole seconds, that we use."""
_TIMEOUT: Final = "query parameter timeout"
_SPAN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_UNITS: Final = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_ends_at: ContextVar[float] = ContextVar("review ends at")


class TooBusyError(BackendError):
    """The time budget is spent although the ledger answers: the breaker stays closed."""


def parse_timeout(text: str | None) -> float:
    """Return how many seconds a review may take, from the API server's timeout, such as `3s`.

    Raises RequestError if it is not a duration in Go's format.
    """
    if text is None:
        return REVIEW_SECONDS
    spans = _SPAN.findall(text)
    if not spans or "".join(number + unit for number, unit in spans) != text:
        raise RequestError.at(_TIMEOUT, "must be a duration such as 3s")
    timeout = sum(float(number) * _UNITS[unit] for number, unit in spans)
    return min(REVIEW_SECONDS, timeout * _SHARE)


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Give everything that the body awaits this many seconds in total."""
    token = _ends_at.set(asyncio.get_running_loop().time() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(token)


def within_budget(most_seconds: float = math.inf) -> asyncio.Timeout:
    """Limit an await to the rest of the budget, and to `most_seconds`. Raises TimeoutError."""
    now = asyncio.get_running_loop().time()
    return asyncio.timeout_at(min(now + most_seconds, _ends_at.get(now + REVIEW_SECONDS)))
