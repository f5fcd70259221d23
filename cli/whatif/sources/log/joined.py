"""Which submission each run belongs to: by the name of the gang, and by time."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cli.whatif.sources.log.runs import RecordedRun
from cli.whatif.sources.log.submissions import Asked

SLACK_SECONDS: Final = 2.0
"""Kubernetes writes the creation of a pod in whole seconds: it may seem to be before the review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A gang as it was submitted, and what became of it; one of both may be unknown."""

    asked: Asked | None
    run: RecordedRun | None


def join(submissions: Sequence[Asked], runs: Iterable[RecordedRun]) -> list[Joined]:
    """Join each run with the last submission of its gang before it.

    A second run of one submission has none of its own: what it asked for is that of the first. A
    submission that is followed by no run before the next one was refused, or never ran.
    """
    by_gang: dict[str, list[Asked]] = defaultdict(list)
    for asked in sorted(submissions, key=lambda one: one.at):
        by_gang[asked.gang].append(asked)
    times = {gang: [one.at for one in found] for gang, found in by_gang.items()}
    used: set[tuple[str, int]] = set()
    joined: list[Joined] = []
    for run in runs:
        own, rest = _places(by_gang.get(run.gang, ()), times.get(run.gang, ()), run)
        used |= {(run.gang, place) for place in rest}
        joined.append(Joined(asked=None if own is None else by_gang[run.gang][own], run=run))
    for gang, found in by_gang.items():
        joined += [
            Joined(asked=one, run=None)
            for place, one in enumerate(found)
            if (gang, place) not in used
        ]
    return joined


def _places(
    asked: Sequence[Asked], times: Sequence[float], run: RecordedRun
) -> tuple[int | None, list[int]]:
    """Return the place of the submission of a run, and all places that belong to the run."""
    until = run.asked if run.asked_again is None else run.asked_again
    first, last = (bisect_right(times, one + SLACK_SECONDS) - 1 for one in (run.asked, until))
    while first >= 0 and asked[first].is_refused:
        first -= 1  # a refused gang has no run
    if first < 0:
        return None, list(range(last + 1)) if last >= 0 and run.asked_again else []
    return first, [first, *range(first + 1, last + 1)]
