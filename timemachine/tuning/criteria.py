"""Objectives and constraints: which of two documents is better on the same days.

All figures are compared with those of the current document on the same days. A document that keeps
all constraints is better than one that does not; then one that no other beats; then the one whose
first objective is less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt
from typing import Final

from policy.queues.durations import MINUTE
from timemachine.tuning.figures import DayFigures, Totals, Waited, add_up
from timemachine.tuning.frontier import layers

_NO_NOISE: Final[Mapping[str, float]] = {}
_FEW: Final = 20
"""Of a VC with fewer gangs the mean says too little: it is counted, and not judged."""


class Objective(StrEnum):
    """What is to become less, in seconds."""

    MEAN = "mean"
    """The mean wait of all gangs."""
    LARGE = "large"
    """The wait that 95 % of large gangs do not exceed."""
    FAIRNESS = "fairness"
    """The mean wait of the VC whose gangs wait longest."""

    def of(self, totals: Totals) -> float:
        """Return its value."""
        match self:
            case Objective.MEAN:
                return totals.all.mean
            case Objective.LARGE:
                return totals.large_p95
            case Objective.FAIRNESS:
                return max((one.mean for one in judged_vcs(totals).values()), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What is wanted."""

    objectives: Sequence[Objective] = tuple(Objective)
    """The first one decides; all of them make up the frontier."""
    limits: Mapping[Objective, float] = field(default_factory=dict)
    """By which part an objective may be worse than under the current document: 0.05 is 5 %."""
    vc_tolerance: float | None = 0.05
    """By which part a VC may wait longer than under the current document; None if as it likes."""
    vc_slack: float = MINUTE
    """How many seconds longer its mean may be besides: of short waits a part is nothing."""

    def scores(self, totals: Totals) -> list[float]:
        """Return the value of each objective."""
        return [objective.of(totals) for objective in self.objectives]

    def allowed(self, before: Waited) -> float:
        """Return the longest mean wait that a VC may have after the change."""
        assert self.vc_tolerance is not None
        return before.mean * (1.0 + self.vc_tolerance) + self.vc_slack

    def worse_vcs(
        self, before: Totals, after: Totals, *, noise: Mapping[str, float] = _NO_NOISE
    ) -> dict[str, float]:
        """Return the VCs that wait longer than is tolerated, and how many seconds too long.

        Of these seconds, those that can be noise do not count.
        """
        if self.vc_tolerance is None:
            return {}
        excess = {
            vc: after.by_vc[vc].mean - self.allowed(waited) - noise.get(vc, 0.0)
            for vc, waited in judged_vcs(before).items()
            if vc in after.by_vc
        }
        return {vc: seconds for vc, seconds in sorted(excess.items()) if seconds > 0.0}

    def broken_limits(self, before: Totals, after: Totals) -> dict[Objective, float]:
        """Return the objectives that are worse than is tolerated, and by how many seconds."""
        excess = {
            objective: objective.of(after) - objective.of(before) * (1.0 + part)
            for objective, part in self.limits.items()
        }
        return {objective: seconds for objective, seconds in excess.items() if seconds > 0.0}

    def violation(
        self, before: Totals, after: Totals, *, noise: Mapping[str, float] = _NO_NOISE
    ) -> float:
        """Return by how much constraints are broken; 0 if all are kept.

        A VC counts with the waiting that it has too much, spread over the gangs of all VCs.
        """
        worse = self.worse_vcs(before, after, noise=noise)
        spread = sum(after.by_vc[vc].gangs * seconds for vc, seconds in worse.items())
        gangs = after.all.gangs or 1.0
        return spread / gangs + sum(self.broken_limits(before, after).values())

    def order(
        self, before: Sequence[DayFigures], after: Sequence[Sequence[DayFigures]]
    ) -> list[int]:
        """Return the places of candidates, the best first.

        In few days a VC waits longer or shorter by chance. So its standard error is tolerated, too.
        """
        current, totals = add_up(before), [add_up(days) for days in after]
        broken = [
            self.violation(current, one, noise=noise_of(before, days))
            for one, days in zip(totals, after, strict=True)
        ]
        kept = [place for place, much in enumerate(broken) if not much]
        scores = [self.scores(totals[place]) for place in kept]
        others = [place for place, much in enumerate(broken) if much]
        return [
            *(kept[place] for place in layers(scores)),
            *sorted(others, key=lambda place: (broken[place], place)),
        ]


def judged_vcs(totals: Totals) -> dict[str, Waited]:
    """Return the VCs with enough gangs for a mean."""
    return {vc: waited for vc, waited in totals.by_vc.items() if waited.gangs >= _FEW}


def noise_of(before: Sequence[DayFigures], after: Sequence[DayFigures]) -> dict[str, float]:
    """Return the standard error of the difference of each VC's mean wait, by its days."""
    changes: dict[str, list[float]] = {}
    gangs: dict[str, float] = {}
    for old, new in zip(before, after, strict=True):
        for vc, waited in new.by_vc.items():
            past = old.by_vc.get(vc, Waited())
            changes.setdefault(vc, []).append(waited.seconds - past.seconds)
            gangs[vc] = gangs.get(vc, 0.0) + waited.gangs
    return {vc: _deviation(some) * sqrt(len(some)) / gangs[vc] for vc, some in changes.items()}


def _deviation(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return sqrt(sum((one - middle) ** 2 for one in values) / max(1, len(values) - 1))
