"""The clock of a process. Its app builds one and injects it, so that a test can set the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`monotonic` measures durations and expiry; `now` dates what people read."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now
