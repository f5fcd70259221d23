"""How the documents fared on the training weeks: the frontier, with intervals.

Only those that played as many weeks as any are compared. They were chosen on these weeks, so their
figures flatter them; what holds is what the judging days say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from timemachine.tuning.frontier import frontier, layers
from timemachine.tuning.screening import Screening
from timemachine.tuning.verdict import CONFIDENCE, Comparing, Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A document on the training weeks."""

    judged: Judged
    is_on_frontier: bool
    """Whether no other one is better in everything."""


def compare_trained(screening: Screening, *, seed: int) -> Sequence[Trained]:
    """Compare the documents that played most weeks, the current one included; frontier first."""
    days = screening.played_most()
    current = days.get(screening.current.name)
    if current is None:
        return ()
    criteria = screening.criteria
    comparing = Comparing(current, criteria, seed=seed, confidence=CONFIDENCE)
    known = {one.name: one for one in screening.everyone}
    judged = [comparing.judged(known[name], some) for name, some in days.items()]
    scores = [[one.changes[what].after for what in criteria.objectives] for one in judged]
    first = set(frontier(scores))
    return [
        Trained(judged=judged[place], is_on_frontier=place in first) for place in layers(scores)
    ]
