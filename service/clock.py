"""The two clocks a shell needs, in one place, so that a test can hold them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`monotonic` measures and expires, `now` dates what people read."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now
