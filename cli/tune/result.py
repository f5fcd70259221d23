"""What a search found, and what it was asked: the input of report, JSON and document. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cli.tune.search import Found
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.parameters import Parameter
from timemachine.tuning.screening import Screening
from timemachine.tuning.stretches import Division, Stretch
from timemachine.tuning.training import Trained, compare_trained
from timemachine.tuning.verdict import Judged, Verdict, judge

CANNOT_KNOW: Final = (
    "Users would have behaved differently: who waits less submits more.",
    "Each stretch begins with two days that only fill the cluster, and without knowledge of "
    "earlier run times.",
)
"""What holds for every search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was searched, on what."""

    source: str
    """Where the arrivals are from, in words."""
    notes: Sequence[str]
    """What cannot be known because of this source."""
    division: Division
    weeks: Sequence[Stretch]
    """The weeks that were played."""
    judged_gangs: int
    """How many gangs count on the judging days."""
    parameters: Sequence[Parameter]
    unsearched: Mapping[Parameter, str]
    """What cannot be searched, with the reason."""
    criteria: Criteria
    large: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a search found."""

    asked: Asked
    candidates: int
    """How many documents were tried besides the current one."""
    found: Found
    verdict: Verdict | None
    """None if there was no time to judge."""
    training: Sequence[Trained] = ()
    """How those fared that played most weeks of training: the frontier first."""
    weeks: int = 0
    """How many weeks these have played."""

    @property
    def best(self) -> Judged | None:
        """The document to use instead of the current one."""
        return self.verdict.best if self.verdict is not None else None

    @property
    def objective(self) -> Objective:
        """The objective that decides."""
        return self.asked.criteria.objectives[0]


def conclude(asked: Asked, screening: Screening, found: Found) -> Result:
    """Judge the finalists, and compare those that played most on the training weeks."""
    verdict = None
    if found.current is not None and found.finalists:
        verdict = judge(found.current, found.finalists, asked.criteria, seed=asked.seed)
    return Result(
        asked=asked,
        candidates=len(screening.everyone) - 1,
        found=found,
        verdict=verdict,
        training=compare_trained(screening, seed=asked.seed),
        weeks=len(screening.weeks_of_current()),
    )
