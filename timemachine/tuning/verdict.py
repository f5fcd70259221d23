"""Whether a candidate is better on the judging days, beyond noise.

The finalists are looked at in the order that training gave them. The first one is best that keeps
all constraints and whose first objective is less with its whole interval: so no document is chosen
because it was lucky on the judging days. As several finalists have a chance, each gets an interval
so wide that all of them hold together with the wanted confidence (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from timemachine.tuning.bootstrap import REPLICATES, Interval, interval_of, resample
from timemachine.tuning.candidates import Candidate
from timemachine.tuning.criteria import Criteria, Objective, judged_vcs
from timemachine.tuning.figures import DayFigures, Totals, add_up, add_weighted

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure under the current document and under another one."""

    before: float
    after: float
    difference: Interval

    @property
    def part(self) -> Interval | None:
        """The difference as part of what it was; None if that was nothing."""
        if not self.before:
            return None
        found = self.difference
        return Interval(
            value=found.value / self.before,
            low=found.low / self.before,
            high=found.high / self.before,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VcChange:
    """How a VC fares."""

    gangs: int
    mean: Change
    is_judged: bool
    """Whether it has enough gangs for a mean."""
    is_worse: bool
    """Whether it waits longer than is tolerated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A finalist on the judging days."""

    candidate: Candidate
    changes: Mapping[Objective, Change]
    vcs: Mapping[str, VcChange]
    broken: Mapping[Objective, float] = field(default_factory=dict)
    """The limits that it does not keep, and by how many seconds."""

    @property
    def worse_vcs(self) -> list[str]:
        """The VCs that wait longer than is tolerated."""
        return [vc for vc, change in self.vcs.items() if change.is_worse]

    @property
    def keeps_constraints(self) -> bool:
        """Whether no VC is worse off and all limits are kept."""
        return not self.worse_vcs and not self.broken

    def is_better(self, objective: Objective) -> bool:
        """Tell whether it is better beyond noise, and keeps all constraints."""
        return self.keeps_constraints and self.changes[objective].difference.is_below_zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the judging days say."""

    finalists: Sequence[Judged]
    """In the order that training gave them."""
    best: Judged | None
    """The document to use instead of the current one, if there is any."""
    confidence: float
    """With which all intervals hold together."""


def judge(
    current: Sequence[DayFigures],
    finalists: Sequence[tuple[Candidate, Sequence[DayFigures]]],
    criteria: Criteria,
    *,
    seed: int,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Compare finalists with the current document on days on which nothing was trained."""
    each = 1.0 - (1.0 - confidence) / max(1, len(finalists))
    comparison = Comparing(current, criteria, seed=seed, confidence=each)
    judged = [comparison.judged(candidate, days) for candidate, days in finalists]
    first = criteria.objectives[0]
    best = next((one for one in judged if one.is_better(first)), None)
    return Verdict(finalists=judged, best=best, confidence=confidence)


class Comparing:
    """Compares documents with the current one, on the same drawn days."""

    def __init__(
        self,
        current: Sequence[DayFigures],
        criteria: Criteria,
        *,
        seed: int,
        confidence: float,
        replicates: int = REPLICATES,
    ) -> None:
        self._criteria = criteria
        self._confidence = confidence
        self._current = add_up(current)
        days = [one.day for one in current]
        self._days = len(days)
        self._draws = resample(days, seed=seed, replicates=replicates)
        self._drawn = [add_weighted(current, times) for times in self._draws]

    def judged(self, candidate: Candidate, days: Sequence[DayFigures]) -> Judged:
        """Return how a document fares."""
        after = add_up(days)
        drawn = [add_weighted(days, times) for times in self._draws]
        return Judged(
            candidate=candidate,
            changes={
                objective: self._change(
                    self._values(objective, self._current, self._drawn),
                    self._values(objective, after, drawn),
                )
                for objective in Objective
            },
            vcs=self._vcs(after, drawn),
            broken=self._criteria.broken_limits(self._current, after),
        )

    def _values(self, objective: Objective, whole: Totals, drawn: Sequence[Totals]) -> list[float]:
        return [objective.of(whole), *map(objective.of, drawn)]

    def _change(self, before: Sequence[float], after: Sequence[float]) -> Change:
        """Compare a figure: of all days, and of each draw."""
        differences = [new - old for old, new in zip(before, after, strict=True)]
        found = interval_of(
            differences[0], differences[1:], confidence=self._confidence, days=self._days
        )
        # No wait can become less than nothing.
        low, high = (max(-before[0], end) for end in (found.low, found.high))
        difference = Interval(value=found.value, low=low, high=high)
        return Change(before=before[0], after=after[0], difference=difference)

    def _vcs(self, after: Totals, drawn: Sequence[Totals]) -> dict[str, VcChange]:
        judged = judged_vcs(self._current)
        worse = self._criteria.worse_vcs(self._current, after)
        return {
            vc: VcChange(
                gangs=round(waited.gangs),
                mean=self._change(_means(vc, self._current, self._drawn), _means(vc, after, drawn)),
                is_judged=vc in judged,
                is_worse=vc in worse,
            )
            for vc, waited in sorted(self._current.by_vc.items())
        }


def _means(vc: str, whole: Totals, drawn: Sequence[Totals]) -> list[float]:
    """Return the mean wait of a VC: of all days, and of each draw; 0 where it has no gangs."""
    found = (one.by_vc.get(vc) for one in (whole, *drawn))
    return [0.0 if waited is None else waited.mean for waited in found]
