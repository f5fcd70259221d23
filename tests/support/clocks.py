"""Clocks that stand still unless a test advances them."""

from datetime import UTC, datetime, timedelta

# A Sunday evening at the end of a month: days, weeks and months end soon.
EVENING = datetime(2026, 5, 31, 22, 0, tzinfo=UTC)


class FrozenTime:
    """Tells a date and time."""

    def __init__(self, now: datetime = EVENING) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **length: float) -> None:
        """Let time pass, such as `hours=1`."""
        self.now += timedelta(**length)


class FrozenSeconds:
    """Tells seconds since some moment."""

    def __init__(self, seconds: float = 1_000_000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds
