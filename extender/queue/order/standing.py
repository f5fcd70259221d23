"""The rank of one gang, with the parts that add up to it. Immutable."""

from dataclasses import dataclass

from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from policy.queues.swaps import SwapRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPart:
    """What one factor, or a formula, gives a gang."""

    factor: str
    value: float
    """From 0 to 1; of a formula, the share of the horizon."""
    worth: float
    """The seconds that the value 1 gives."""
    failure: str = ""
    """Why a formula gives nothing: it cannot be evaluated for the gang."""
    factors: tuple[tuple[str, float], ...] = ()
    """Of a formula: the factors that it reads, and their values."""

    @property
    def seconds(self) -> float:
        """The seconds of waiting that it gives."""
        return self.value * self.worth


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapState:
    """A swap of places that concerns a gang, and what became of it."""

    request: SwapRequest
    """As seen from this gang: `other` is the gang that it is swapped with."""
    place: QueueFacts | None = None
    """What the gang is ranked by instead of its own facts; None if the swap is not in force."""
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The place of a gang in the order, before it is compared with others."""

    level: int
    """0 for the first level; the gang's own one, or one that it was promoted to."""
    level_name: str
    own_level_name: str
    asked: float
    """Since when its age counts, in seconds since 1970."""
    parts: tuple[RankPart, ...] = ()
    next_promotion: float | None = None
    """When it is ranked in the level above, in seconds since 1970."""
    swap: SwapState | None = None

    @property
    def credit(self) -> float:
        """The seconds of waiting that all parts together give."""
        return sum(part.seconds for part in self.parts)

    @property
    def rank(self) -> float:
        """When it would have asked to be where it is by age alone; the lowest is first."""
        return self.asked - self.credit

    @property
    def is_promoted(self) -> bool:
        """Whether it is ranked in a higher level than its own."""
        return self.level_name != self.own_level_name

    def place_of(self, facts: QueueFacts) -> QueueFacts:
        """Return what the gang with these facts is ranked by: its own, or those of another one."""
        swapped = self.swap.place if self.swap is not None else None
        return facts if swapped is None else swapped

    @property
    def key(self) -> Rank:
        """What gangs are sorted by: the level, the rank, and of equal ranks the age."""
        return float(self.level), self.rank, self.asked
