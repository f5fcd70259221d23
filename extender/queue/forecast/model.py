"""How long a gang is expected to run, and from what that is known. Immutable."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """The run time that is expected of a gang, in seconds; None stands for what is not known."""

    median: float | None = None
    """As many runs are expected to end before it as after it."""
    low: float | None = None
    """One run in ten is expected to end before it."""
    high: float | None = None
    """The share `backfillQuantile` of the Queues document is expected to end before it."""
    limit: float | None = None
    """When the run is ended by force."""
    source: str = "nothing is known"
    """From what it is known: the key of the history, the owner's estimate, or a limit."""
    runs: int = 0
    """How many ended runs of the key are known."""

    @property
    def is_known(self) -> bool:
        """Whether a median is known."""
        return self.median is not None

    @property
    def ends_within(self) -> float | None:
        """Within which time the run is expected to end, safely enough to backfill."""
        known = [seconds for seconds in (self.high, self.limit) if seconds is not None]
        return min(known) if known else None


NOTHING_KNOWN: Final = RunTime()
