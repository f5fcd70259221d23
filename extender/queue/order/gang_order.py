"""Levels, factors and ranks of gangs, by the Queues document. Pure; the caller gives the time.

What the order needs beside the gang itself (recent use, how large VCs are and how much of them is
in use) is told to it from time to time; between two reports it answers the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log2
from typing import Final

from extender.queue.order.facts import QueueFacts
from extender.queue.order.fair_shares import FairShares
from extender.queue.order.standing import RankPart, Standing
from policy.classes import MAX_CELL_PRIORITY, NO_CLASSES, Classes
from policy.queues.factors import SOON_SECONDS, FactorName
from policy.queues.queues import DEFAULT_QUEUES, NamedLevels, QueueLevel, Queues
from policy.rules.expression import EvaluationError
from policy.submission import ClassName

FORMULA = "formula"
"""The name of the one part of a level with a formula."""
BY_VC: Final = (FactorName.SMALL_GANG, FactorName.FILL)
"""The factors that depend on the size or the use of VCs."""
BY_RUN_TIME: Final = (FactorName.SHORT_RUN, FactorName.ASKED)
_FILL_STEPS = 50


@dataclass(frozen=True, slots=True)
class VcSize:
    """The leaf cells of a VC."""

    promised: int
    used: int = 0

    @property
    def fill(self) -> float:
        """How much of its promise is in use, from 0 to 1, in steps."""
        if not self.promised:
            return 0.0
        return round(min(1.0, self.used / self.promised) * _FILL_STEPS) / _FILL_STEPS


class GangOrder:
    """Ranks gangs by the document in force."""

    def __init__(self, queues: Queues = DEFAULT_QUEUES, classes: Classes = NO_CLASSES) -> None:
        self.queues = queues
        self.shares = FairShares()
        self._classes = classes
        self._user_levels: Mapping[str, float] = {}
        self._group_levels: Mapping[str, float] = {}
        self._vcs: Mapping[str, VcSize] = {}
        self._leaf_cells = 0
        self.version = 0
        """Grows with every document and all classes that are used."""
        self.uses_run_times = False
        """Whether any rank depends on how long gangs run."""
        self._configure()

    def configure(self, queues: Queues, classes: Classes) -> bool:
        """Use another document or other classes; return whether any rank may have changed."""
        if (queues, classes) == (self.queues, self._classes):
            return False
        self.queues, self._classes = queues, classes
        self.version += 1
        self._configure()
        return True

    def _configure(self) -> None:
        self._user_levels = _level_factors(self.queues.user_levels)
        self._group_levels = _level_factors(self.queues.group_levels)
        self.shares.configure(self.queues.fair_share)
        self.uses_run_times = any(map(self.queues.uses, BY_RUN_TIME))

    def observe_vcs(self, sizes: Mapping[str, VcSize], *, leaf_cells: int) -> Collection[str]:
        """Note how large VCs and the cluster are; return the VCs whose gangs may rank anew."""
        before, self._vcs = self._vcs, dict(sizes)
        is_resized, self._leaf_cells = leaf_cells != self._leaf_cells, leaf_cells
        self.shares.observe_capacity(leaf_cells)
        small, fill = (self.queues.uses(one) for one in (FactorName.SMALL_GANG, FactorName.FILL))
        return [
            vc
            for vc, size in sizes.items()
            if (small and (is_resized or size.promised != _size(before, vc).promised))
            or (fill and size.fill != _size(before, vc).fill)
        ]

    def size(self, vc: str) -> VcSize:
        """Return how large a VC is, as it was told last."""
        return _size(self._vcs, vc)

    @property
    def leaf_cells(self) -> int:
        """The leaf cells of the cluster, as they were told last."""
        return self._leaf_cells

    def depends(self, standing: Standing, *factors: FactorName) -> bool:
        """Tell whether the rank of a gang depends on any of some factors."""
        return any(map(self.queues.levels[standing.level].uses, factors))

    def standing(self, facts: QueueFacts, *, now: float) -> Standing:
        """Return the level and the rank of a gang."""
        own = place = self.queues.level_of(facts)
        next_promotion = None
        for age in self.queues.promotion_ages(own):
            if facts.asked + age > now:
                next_promotion = facts.asked + age
                break
            place -= 1
        level = self.queues.levels[place]
        return Standing(
            level=place,
            level_name=level.name,
            own_level_name=self.queues.levels[own].name,
            asked=facts.asked,
            parts=self._parts(level, facts),
            next_promotion=next_promotion,
        )

    def _parts(self, level: QueueLevel, facts: QueueFacts) -> tuple[RankPart, ...]:
        if level.formula is not None:
            return (self._formula_part(level, facts),)
        return tuple(
            RankPart(factor=name, value=self.factor(name, facts), worth=worth)
            for name, worth in level.worth.items()
        )

    def _formula_part(self, level: QueueLevel, facts: QueueFacts) -> RankPart:
        """Return what the formula gives, clamped to the horizon; nothing if it gives no number."""
        assert level.formula is not None, "only for levels with a formula"
        factors = {name: self.factor(name, facts) for name in FactorName}
        horizon = level.horizon
        try:
            seconds = level.formula.seconds(factors, level.worth)
        except EvaluationError as exc:
            return RankPart(factor=FORMULA, value=0.0, worth=horizon, failure=str(exc))
        value = min(max(seconds, 0.0), horizon) / horizon if horizon else 0.0
        read = tuple((name.value, factors[name]) for name in level.formula.factors)
        return RankPart(factor=FORMULA, value=value, worth=horizon, factors=read)

    def factor(self, name: FactorName, facts: QueueFacts) -> float:
        """Return a factor of a gang, from 0 to 1."""
        match name:
            case FactorName.CLASS:
                return self._class_factor(facts)
            case FactorName.USER_LEVEL:
                return self._user_levels.get(facts.user, 0.0)
            case FactorName.GROUP_LEVEL:
                return self._group_levels.get(facts.group or "", 0.0)
            case FactorName.FAIR_SHARE:
                return self.shares.factor(facts.user, facts.group)
            case FactorName.SHORT_RUN:
                return self._shortness(self.expected_seconds(facts))
            case FactorName.SMALL_GANG:
                return self._smallness(facts)
            case FactorName.ASKED:
                return self._shortness(facts.run_time.limit)
            case FactorName.FILL:
                return _size(self._vcs, facts.vc).fill
            case FactorName.START_BY:
                return self._urgency(facts)

    def expected_seconds(self, facts: QueueFacts) -> float | None:
        """Return how long a gang is expected to run, by the rules for run times."""
        if facts.run_time.median is not None:
            return facts.run_time.median
        return facts.run_time.limit if self.queues.run_time.unknown == "asked" else None

    def _class_factor(self, facts: QueueFacts) -> float:
        rank, count = self._classes.rank(ClassName(facts.class_name)), len(self._classes.entries)
        if rank is not None:
            return (count - 1 - rank) / (count - 1) if count > 1 else 0.0
        if count:
            return 0.0
        return log2(facts.priority + 2) / log2(MAX_CELL_PRIORITY + 2)

    def _shortness(self, seconds: float | None) -> float:
        cap = self.queues.run_time.cap
        return 0.0 if seconds is None else 1.0 - min(max(seconds, 0.0), cap) / cap

    def _urgency(self, facts: QueueFacts) -> float:
        """Return how soon a gang is wished to start, within what its owner is worth.

        It depends on times that are fixed when the gang is submitted, so that ranks do not move.
        """
        if facts.start_by is None:
            return 0.0
        levels = (
            self._user_levels.get(facts.user, 0.0),
            self._group_levels.get(facts.group or "", 0.0),
        )
        has_levels = self._user_levels or self._group_levels
        wait = min(max(facts.start_by - facts.asked, 0.0), SOON_SECONDS)
        return (1.0 - wait / SOON_SECONDS) * (max(levels) if has_levels else 1.0)

    def _smallness(self, facts: QueueFacts) -> float:
        most = _size(self._vcs, facts.vc).promised or self._leaf_cells
        if most <= 1:
            return 0.0
        return min(1.0, max(0.0, 1.0 - log2(max(1, facts.leaf_cells)) / log2(most)))


def _level_factors(levels: NamedLevels) -> dict[str, float]:
    """Return the factor of each member: those that are not listed are below the last level."""
    count = len(levels)
    return {
        member: (count - place) / count
        for place, (_, members) in enumerate(levels)
        for member in sorted(members)
    }


def _size(sizes: Mapping[str, VcSize], vc: str) -> VcSize:
    return sizes.get(vc, VcSize(0))
