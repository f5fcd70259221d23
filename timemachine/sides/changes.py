"""How single gangs fared differently in two runs, and in what words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policy.classes import Classes
from policy.queues.durations import format_duration
from policy.rules.decision import Outcome, class_text
from policy.wording import count_of, listing
from timemachine.comparison import ChangeKind, GangChange
from timemachine.model import Fate, Run

_LEAST_SECONDS: Final = 60.0
"""A start that moves by less is no change: a play makes steps of this length."""
_MOST_NODES: Final = 4
MOST_CHANGES: Final = 100


@dataclass(frozen=True, slots=True)
class Pair:
    """One gang in both runs."""

    before: Fate
    after: Fate


class Changes:
    """Compares the fates of the same arrivals."""

    def __init__(self, before: Run, after: Run) -> None:
        self._before = before
        self._after = after

    def pairs(self) -> list[Pair]:
        """Return the gangs that count, in the order of submission."""
        both = zip(self._before.fates, self._after.fates, strict=True)
        return [Pair(old, new) for old, new in both if old.arrival.is_counted]

    def kinds(self, pair: Pair) -> Iterator[ChangeKind]:
        """Yield how a gang fared differently."""
        old, new = pair.before, pair.after
        if old.is_admitted != new.is_admitted:
            yield ChangeKind.ADMITTED if new.is_admitted else ChangeKind.REFUSED
            return
        if not new.is_admitted:
            return
        if old.class_name != new.class_name:
            yield ChangeKind.LOWERED if self._is_lower(old, new) else ChangeKind.RAISED
        if bool(old.preemptions) != bool(new.preemptions):
            yield ChangeKind.PREEMPTED if new.preemptions else ChangeKind.NOT_PREEMPTED
        seconds = self.seconds(pair)
        if abs(seconds) >= _LEAST_SECONDS:
            yield ChangeKind.STARTS_LATER if seconds > 0 else ChangeKind.STARTS_EARLIER
        if old.nodes and new.nodes and set(old.nodes) != set(new.nodes):
            yield ChangeKind.PLACED_ELSEWHERE

    def _is_lower(self, old: Fate, new: Fate) -> bool:
        """Tell whether the class after the change is below the one before."""
        known = (self._after.world.policy.classes, self._before.world.policy.classes)
        ranks = (_compare(classes, new, old) for classes in known)
        return next((rank for rank in ranks if rank is not None), -1) < 0

    def seconds(self, pair: Pair) -> float:
        """Return by how much a gang starts later; one that never starts counts until the end.

        Zero for a gang that was refused, or started in neither run.
        """
        both = (pair.before, pair.after)
        if not all(fate.is_admitted for fate in both) or all(fate.started is None for fate in both):
            return 0.0
        return self._after.wait(pair.after) - self._before.wait(pair.before)

    def change(self, pair: Pair, kind: ChangeKind) -> GangChange:
        """Describe one change."""
        arrival = pair.after.arrival
        return GangChange(
            gang=str(arrival.gang),
            user=arrival.user,
            vc=arrival.vc,
            leaf_cells=arrival.leaf_cells,
            submitted=arrival.submitted,
            kind=kind,
            seconds=self.seconds(pair),
            before=describe(pair.before, self._before),
            after=describe(pair.after, self._after),
        )


def _compare(classes: Classes, left: Fate, right: Fate) -> int | None:
    return classes.compare(left.class_name, right.class_name)


def describe(fate: Fate, run: Run) -> str:
    """Say what happened to a gang."""
    if fate.outcome is Outcome.REFUSED:
        return f"refused: {fate.reason}"
    had = class_text(fate.class_name)
    if not fate.can_start:
        return f"{had}, never starts: {fate.reason}"
    wait = format_duration(run.wait(fate))
    if fate.started is None:
        return f"{had}, still waited after {wait}"
    lost = f", preempted {count_of(fate.preemptions, 'time')}" if fate.preemptions else ""
    return f"{had}, started after {wait}{_on(fate.nodes)}{lost}"


def _on(nodes: Sequence[str]) -> str:
    if not nodes:
        return ""
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return f" on {listing(nodes[:_MOST_NODES])}{more}"
