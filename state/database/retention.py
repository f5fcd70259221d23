"""How long data is kept. Imports no database: the command line shows these numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long data is kept, in whole days after the day of its creation."""

    log_days: int = 90
    """Decisions and observations, for explanations and replays. Uses most of the disk."""

    history_days: int = 400
    """Runs of gangs, past charges and documents."""

    totals_days: int = 1100
    """Daily sums of users, groups, VCs and classes. Uses little disk."""

    ahead_days: int = 7
    """How many days ahead partitions are created, and so how long retention may fail."""

    every_seconds: float = 3600.0
    """How often partitions are created and dropped."""

    retry_seconds: float = 60.0
    """The pause after a failure."""
