"""`Queues`: levels, worth and bounds, as the order and its neighbours use them.

The bound. Let a gang ask at s. In a level with horizon H it is ranked at s - x with 0 <= x <= H,
so a gang that asks after s + H is never ahead of it. A gang of a lower level is ranked in the level
above after `promote_after` P. The document requires P >= H of the level above: a gang that asks
after s + P then has a rank above s, whatever its factors are. So `settles_after`, H of the first
level or the sum of P on the way there, is how long newer gangs can still go ahead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from policy.queues.durations import DAY, HOUR, MINUTE
from policy.queues.factors import FactorName
from policy.queues.formula import Formula
from policy.queues.who import EVERY_GANG, AskingGang, Who
from policy.queues.windows import AdvanceReservation, MaintenanceWindow

DEFAULT_LONGEST: Final = "default"
"""The key of `longest` for all classes that are not listed."""
NamedLevels = tuple[tuple[str, frozenset[str]], ...]
"""Levels of users or groups with their members, highest first."""


class Strategy(StrEnum):
    """How a level orders its gangs; each is a preset of `worth`."""

    FIFO = "fifo"
    PRIORITY = "priority"
    FAIR_SHARE = "fair-share"
    SHORTEST_FIRST = "shortest-first"
    FORMULA = "formula"


PRESETS: Final[Mapping[Strategy, Mapping[FactorName, float]]] = {
    Strategy.FIFO: {},
    Strategy.PRIORITY: {FactorName.CLASS: 7 * DAY},
    Strategy.FAIR_SHARE: {FactorName.FAIR_SHARE: 48 * HOUR},
    Strategy.SHORTEST_FIRST: {FactorName.SHORT_RUN: 192 * HOUR},
    Strategy.FORMULA: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """One level: which gangs it takes, and how it orders them."""

    name: str
    who: Who = EVERY_GANG
    strategy: Strategy
    worth: Mapping[FactorName, float]
    """Seconds by factor: those of the strategy, and the document's instead of them."""
    formula: Formula | None = None
    promote_after: float | None = None
    """After how many seconds of waiting its gangs are ranked in the level above."""

    @property
    def horizon(self) -> float:
        """How many seconds all factors together are worth at most."""
        return sum(self.worth.values())

    def uses(self, factor: FactorName) -> bool:
        """Tell whether its ranks depend on a factor: a formula may use one without a worth."""
        if self.formula is not None:
            return factor in self.formula.factors
        return bool(self.worth.get(factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShareRules:
    """How recent use is counted."""

    half_life: float = 7 * DAY
    weights: Mapping[str, float] = field(default_factory=dict)
    """By charged group; 1 for all others."""
    entry: Literal["predicted", "none"] = "predicted"
    """Whether a gang that starts counts at once with its expected use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeRules:
    """What is assumed about run times."""

    cap: float = DAY
    """From here on a longer run makes no difference to the rank."""
    longest: Mapping[str, float] = field(default_factory=dict)
    """The longest run by class, or of all other classes (`default`); empty if there is none."""
    unknown: Literal["asked", "cap"] = "asked"
    """What a gang without history is expected to run: its limit, or `cap`."""
    enforce: bool = False
    """Whether runs are ended after `longest`; otherwise it is an assumption."""

    def longest_of(self, class_name: str) -> float | None:
        """Return the longest run of a class, in seconds; None if there is none."""
        return self.longest.get(class_name, self.longest.get(DEFAULT_LONGEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRules:
    """Which waiting gangs get a reservation, and which others may use its cells before."""

    per_pool: int = 1
    after: float = 10 * MINUTE
    backfill_quantile: float = 0.9
    sticky: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRules:
    """How running gangs are protected from preemption."""

    minimum_run: float = 0.0
    grace: float = 0.0
    """How long a victim runs on after its owner was told; the pods' own grace period follows."""


class DefragmentationMode(StrEnum):
    """What becomes of moves that let a gang start earlier."""

    OFF = "off"
    PROPOSE = "propose"
    PERFORM = "perform"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationRules:
    """Whether opportunistic gangs are moved for others, and at which cost."""

    mode: DefragmentationMode = DefragmentationMode.PROPOSE
    maximum_cost: float = HOUR
    """Leaf-cell seconds of work that all moves for one gang may lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStartRules:
    """How expected starts are computed."""

    coverage: float = 0.8
    samples: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """The whole document."""

    levels: tuple[QueueLevel, ...]
    """The first that takes a gang counts; the last takes every gang."""
    user_levels: NamedLevels = ()
    group_levels: NamedLevels = ()
    fair_share: FairShareRules = FairShareRules()
    run_time: RunTimeRules = RunTimeRules()
    reservation: ReservationRules = ReservationRules()
    preemption: PreemptionRules = PreemptionRules()
    defragmentation: DefragmentationRules = DefragmentationRules()
    expected_start: ExpectedStartRules = ExpectedStartRules()
    reservations: tuple[AdvanceReservation, ...] = ()
    maintenance: tuple[MaintenanceWindow, ...] = ()

    def level_of(self, gang: AskingGang) -> int:
        """Return the place of the level that takes a gang."""
        places = range(len(self.levels) - 1)
        return next((place for place in places if self.levels[place].who.takes(gang)), len(places))

    def promotion_ages(self, place: int) -> tuple[float, ...]:
        """Return at which ages a gang of a level is ranked one level higher, each after the last.

        The first age leads to the level above, the last one to the first level.
        """
        ages: list[float] = []
        for level in reversed(self.levels[1 : place + 1]):
            ages.append((ages[-1] if ages else 0.0) + (level.promote_after or 0.0))
        return tuple(ages)

    def settles_after(self, place: int) -> float:
        """Return how long gangs that ask later can still go ahead of a gang of a level."""
        ages = self.promotion_ages(place)
        return max(self.levels[0].horizon, ages[-1]) if ages else self.levels[0].horizon

    def uses(self, factor: FactorName) -> bool:
        """Tell whether the ranks of any level depend on a factor."""
        return any(level.uses(factor) for level in self.levels)


DEFAULT_QUEUES: Final = Queues(
    levels=(
        QueueLevel(
            name="default", strategy=Strategy.PRIORITY, worth=dict(PRESETS[Strategy.PRIORITY])
        ),
    )
)
"""What applies without a Queues document: the class counts for a week of waiting, then age."""
