"""How two plays of the same day differ, by user and class."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from policy.classes import Classes
from policy.past.gangs import PastDay
from policy.past.play import Fate, PastPlay
from policy.policy import Policy
from policy.rules.decision import Outcome
from policy.submission import ClassName, UserName

Users = Counter[UserName]


@dataclass(slots=True, kw_only=True)
class PolicyEffect:
    """What a policy would have changed."""

    submissions: int
    seconds: float
    """The length of the time."""
    lowered: dict[ClassName, Users] = field(default_factory=dict)
    """Gangs that would have had a lower class, by that class."""
    raised: dict[ClassName, Users] = field(default_factory=dict)
    """Those that would have had a higher one."""
    refused: Users = field(default_factory=Counter)
    queued: Users = field(default_factory=Counter)
    admitted: Users = field(default_factory=Counter)
    """Those that would have been let in at once, instead of refused or kept waiting for quota."""
    idle_rules: tuple[int, ...] = ()
    """The numbers of rules that are new, and would have had no effect."""
    assumed: int = 0
    """Gangs without a recorded end that the policy lets in."""
    assumed_seconds: float = 0.0
    older: int = 0
    """Submissions that could not be played."""

    @property
    def is_none(self) -> bool:
        """Whether no gang would have been decided otherwise."""
        found = (self.lowered, self.raised, self.refused, self.queued, self.admitted)
        return not any(found)


def find_effect(
    day: PastDay, *, before: Policy, after: Policy, may_go_on: Callable[[], bool] = lambda: True
) -> PolicyEffect | None:
    """Play a day under two policies; `may_go_on` is asked before each gang, None if it may not."""
    first, second = PastPlay(day, before), PastPlay(day, after)
    for _ in chain(first.run(), second.run()):
        if not may_go_on():
            return None
    return _compare(day, first, second, before=before, after=after)


def _compare(
    day: PastDay, first: PastPlay, second: PastPlay, *, before: Policy, after: Policy
) -> PolicyEffect:
    effect = PolicyEffect(
        submissions=len(day.gangs),
        seconds=day.until - day.since,
        idle_rules=tuple(_idle_rules(second, before=before, after=after)),
        assumed_seconds=day.assumed_seconds,
        older=day.older,
    )
    for gang, was, would in zip(day.gangs, first.fates, second.fates, strict=True):
        effect.assumed += gang.is_assumed and would.outcome is not Outcome.REFUSED
        if was != would:
            users = _find_place(effect, was, would, classes=after.classes)
            users[gang.request.submission.user] += 1
    return effect


def _find_place(effect: PolicyEffect, was: Fate, would: Fate, *, classes: Classes) -> Users:
    """Return the users whose gangs are decided like this instead of that."""
    match would.outcome:
        case Outcome.REFUSED:
            return effect.refused
        case Outcome.QUEUED:
            return effect.queued
    if was.outcome is not Outcome.ADMITTED:
        return effect.admitted
    is_lower = classes.is_lower(would.class_name, was.class_name)
    classed = effect.lowered if is_lower else effect.raised
    return classed.setdefault(would.class_name, Counter())


def _idle_rules(play: PastPlay, *, before: Policy, after: Policy) -> Iterator[int]:
    """Yield the numbers of rules without effect, of those that are new."""
    known: Sequence[object] = before.rules.rules
    for place, rule in enumerate(after.rules.rules):
        if rule not in known and not play.hits[place]:
            yield place + 1
