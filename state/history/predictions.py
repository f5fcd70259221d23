"""Past runs that predictions are made from, and the errors of predictions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from state.history.facts import Prediction

WHOLE_OUTCOMES: Final = ("succeeded", "failed", "deleted")
"""How runs end by themselves, or by their owner; others were cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run that had begun and has ended, as far as predictions need it."""

    run: str
    gang: str
    user_name: str | None
    vc: str | None
    workload: str | None
    image: str | None
    leaf_count: int | None
    outcome: str | None
    started_at: datetime
    ended_at: datetime
    start: Prediction | None
    """The first prediction of its start."""

    @property
    def is_whole(self) -> bool:
        """Whether it ended by itself, or by its owner."""
        return self.outcome in WHOLE_OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """How far predictions of one kind, key and size were off."""

    kind: str
    key: str
    """Of run times, what the runs have in common; of starts, the predicted wait."""
    size: int
    runs: int
    median_factor: float
    """Half of the outcomes were off by more than this factor."""
    within_twice: float
    """The share of outcomes that were off by a factor of at most two."""
    covered: float | None
    """The share of outcomes inside the interval, of those that were told; None without any."""
