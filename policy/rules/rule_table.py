"""Applies the priority rules to a submission: in which class may this gang run?

Rules are tried in order. A rule matches if every field that it has matches; a field that is missing
matches all. A matching rule has one of these effects:

- `retain` or `fail` stops: the gang is admitted in its class as lowered so far, or refused;
- a class lowers the gang to it, and matching goes on with the *next* rules and the new class.

A rule never raises a class: one that names a class not lower than the present one has no effect,
and its note is not shown. Numbers include this gang: `occupied` is what the submitter holds and
asks for together; `occupiedHigh` is the same in high classes, to which this gang belongs while its
class, as lowered so far, is a high one.

If usage is not known, the first rule reached that depends on it (all its other fields match) acts
as `retain`, with a warning. A `when` that cannot be evaluated for a submission does not match, also
with a warning.

Example: rules `[prod → test, test and occupied > 2 → oppo, oppo and occupied > 10 → fail]`. A gang
of 4 in class prod becomes test, then (4 > 2) oppo; it is refused if the submitter holds 7 already.

Cost: the regular expressions of all rules are searched together, once per decision (`priority`
once per class); only the rules that they match are tried one by one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import cel

from policy.classes import Classes
from policy.rules.comparison import Comparison
from policy.rules.decision import (
    ComparedNumber,
    Hit,
    Outcome,
    Quantity,
    Range,
    RuleDecision,
    RuleWarning,
    WarningKind,
)
from policy.rules.expression import Expression, build_inputs
from policy.rules.matching import Answer, AskedWhen, Matcher, Matches, evaluate
from policy.rules.patterns import Pattern, PatternIndex
from policy.submission import ClassName, Occupancy, Submission

RETAIN: Final = "retain"
FAIL: Final = "fail"
MAX_WHEN_WARNINGS: Final = 10
"""Enough to find the mistake; a decision must not grow with a broken table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; a field that is None matches all."""

    user: Pattern | None = None
    group: Pattern | None = None
    vc: Pattern | None = None
    priority: Pattern | None = None
    current: Comparison | None = None
    occupied: Comparison | None = None
    occupied_high: Comparison | None = None
    occupied_low: Comparison | None = None
    when: Expression | None = None
    then: str
    note: str = ""

    @property
    def stops(self) -> bool:
        """Whether later rules are not tried if this one matches."""
        return self.then in (RETAIN, FAIL)

    @property
    def needs_usage(self) -> bool:
        """Whether this rule depends on what the submitter holds."""
        return (
            self.occupied is not None
            or self.occupied_high is not None
            or self.occupied_low is not None
            or (self.when is not None and self.when.needs_usage)
        )

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """The fields that are not numbers, with their texts."""
        fields = {
            "user": self.user,
            "group": self.group,
            "vc": self.vc,
            "class": self.priority,
            "when": self.when,
        }
        return tuple((name, str(text)) for name, text in fields.items() if text is not None)


class RuleTable:
    """All rules, in order, indexed for deciding. Immutable."""

    __slots__ = ("_group", "_priority", "_user", "_vc", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Index the rules."""
        self.rules: Final = tuple(rules)
        self._user = PatternIndex([rule.user for rule in self.rules])
        self._group = PatternIndex([rule.group for rule in self.rules])
        self._vc = PatternIndex([rule.vc for rule in self.rules])
        self._priority = PatternIndex([rule.priority for rule in self.rules])

    def decide(
        self,
        submission: Submission,
        *,
        usage: Occupancy | None,
        classes: Classes,
        matcher: Matcher | None = None,
    ) -> RuleDecision:
        """Decide in which class the gang may run; `usage` is what its submitter holds already.

        `matcher` says which rules match names; None matches them by their texts.
        """
        walk = _Walk(
            rules=self.rules,
            matcher=matcher or self,
            submission=submission,
            usage=usage,
            classes=classes,
        )
        return walk.run()

    def for_submission(self, submission: Submission) -> int:
        """Return, as a bit set, the rules for this submitter and VC in any class."""
        return (
            self._user.places(submission.user)
            & self._vc.places(submission.vc)
            & self._group.places_any(submission.groups)
        )

    def for_class(self, name: ClassName) -> int:
        """Return, as a bit set, the rules for this class."""
        return self._priority.places(name)

    def answer(
        self, asked: AskedWhen, when: Expression, inputs: Callable[[], cel.Context]
    ) -> Answer:
        """Evaluate the `when` of a rule."""
        return evaluate(when, inputs)

    @property
    def for_all(self) -> int:
        """The rules that are for every submitter and VC, as a bit set."""
        return self._user.always & self._vc.always & self._group.always


NO_RULES: Final = RuleTable(())
"""What applies without a Rules document."""


class _Walk:
    """One pass through a table: the class as lowered so far, and the rules that took effect."""

    def __init__(
        self,
        *,
        rules: tuple[Rule, ...],
        matcher: Matcher,
        submission: Submission,
        usage: Occupancy | None,
        classes: Classes,
    ) -> None:
        self._rules = rules
        self._matcher = matcher
        self._ours = matcher.for_submission(submission)
        self._answered: dict[AskedWhen, Answer] = {}
        self._submission = submission
        self._usage = usage
        self._classes = classes
        self._hits: list[Hit] = []
        self._warnings: list[RuleWarning] = []
        self._occupied = submission.leaf_count + (usage.occupied if usage else 0)
        self._needs_usage = False
        self._valid: int | None = None
        self._valid_high: int | None = None
        self._valid_low: int | None = None
        self._enter(submission.requested_class)

    def run(self) -> RuleDecision:
        """Try the rules in order; called once."""
        candidates = self._candidates()
        index = candidates.find("1")
        while index >= 0:
            rule = self._rules[index]
            if self._matches(index, rule):
                if self._usage is None and rule.needs_usage:
                    self._warn(index, WarningKind.USAGE_UNKNOWN)
                    break
                if rule.stops:
                    self._hit(index, rule, after=self._present)
                    return self._decide(Outcome.REFUSED if rule.then == FAIL else Outcome.ADMITTED)
                if self._classes.is_lower(ClassName(rule.then), self._present):
                    self._hit(index, rule, after=ClassName(rule.then))
                    self._enter(ClassName(rule.then))
                    candidates = self._candidates()
            index = candidates.find("1", index + 1)
        return self._decide(Outcome.ADMITTED)

    def _candidates(self) -> str:
        """Write the rules for the present class as bits, the first rule first.

        Finding the next "1" in a string is much faster than shifting a long number.
        """
        return bin(self._ours & self._matcher.for_class(self._present))[:1:-1]

    def _enter(self, name: ClassName) -> None:
        self._present = name
        held = self._usage or Occupancy()
        own = self._submission.leaf_count
        self._counted_high = own if self._classes.is_high(name) else 0
        self._occupied_high = held.occupied_high + self._counted_high
        self._occupied_low = held.occupied_low + own - self._counted_high
        self._inputs: cel.Context | None = None

    def _matches(self, index: int, rule: Rule) -> bool:
        """Check the fields that the index did not; without usage, those that do not need it."""
        if rule.current is not None and not rule.current.holds(self._submission.leaf_count):
            return False
        self._needs_usage = self._needs_usage or rule.needs_usage
        if self._usage is not None:
            if rule.occupied is not None and not self._is_occupied(rule.occupied):
                return False
            if rule.occupied_high is not None and not self._is_occupied_high(rule.occupied_high):
                return False
            if rule.occupied_low is not None and not self._is_occupied_low(rule.occupied_low):
                return False
        elif rule.when is not None and rule.when.needs_usage:
            return True
        return rule.when is None or self._answers(index, rule.when)

    def _is_occupied(self, comparison: Comparison) -> bool:
        self._keep_valid(comparison.unchanged_up_to(self._occupied))
        return comparison.holds(self._occupied)

    def _is_occupied_high(self, comparison: Comparison) -> bool:
        self._keep_valid_high(comparison.unchanged_up_to(self._occupied_high))
        return comparison.holds(self._occupied_high)

    def _is_occupied_low(self, comparison: Comparison) -> bool:
        self._keep_valid_low(comparison.unchanged_up_to(self._occupied_low))
        return comparison.holds(self._occupied_low)

    def _keep_valid(self, last: int | None) -> None:
        self._valid = _least(self._valid, _beside(last, self._submission.leaf_count))

    def _keep_valid_high(self, last: int | None) -> None:
        self._valid_high = _least(self._valid_high, _beside(last, self._counted_high))

    def _keep_valid_low(self, last: int | None) -> None:
        counted = self._submission.leaf_count - self._counted_high
        self._valid_low = _least(self._valid_low, _beside(last, counted))

    def _answers(self, index: int, when: Expression) -> bool:
        if when.needs_usage:
            # The result of an expression may change at any number.
            self._keep_valid(self._occupied)
            self._keep_valid_high(self._occupied_high)
            self._keep_valid_low(self._occupied_low)
        asked = self._present, index
        answer = self._answered[asked] = self._matcher.answer(asked, when, self._build_inputs)
        if isinstance(answer, bool):
            return answer
        if len(self._warnings) < MAX_WHEN_WARNINGS:
            self._warn(index, WarningKind.WHEN_FAILED, detail=answer)
        return False

    def _build_inputs(self) -> cel.Context:
        if self._inputs is None:
            self._inputs = build_inputs(self._values())
        return self._inputs

    def _values(self) -> dict[str, object]:
        submission = self._submission
        return {
            "user": submission.user,
            "groups": list(submission.groups),
            "vc": submission.vc,
            "class": self._present,
            "requestedClass": submission.requested_class,
            "current": submission.leaf_count,
            "occupied": self._occupied,
            "occupiedHigh": self._occupied_high,
            "occupiedLow": self._occupied_low,
            "leafType": submission.leaf_type or "",
            "gangSize": submission.gang_size,
            "namespace": submission.gang.namespace,
            "labels": dict(submission.labels),
        }

    def _hit(self, index: int, rule: Rule, *, after: ClassName) -> None:
        numbers = (
            (Quantity.CURRENT, self._submission.leaf_count, rule.current),
            (Quantity.OCCUPIED, self._occupied, rule.occupied),
            (Quantity.OCCUPIED_HIGH, self._occupied_high, rule.occupied_high),
            (Quantity.OCCUPIED_LOW, self._occupied_low, rule.occupied_low),
        )
        hit = Hit(
            index=index,
            then=rule.then,
            note=rule.note,
            class_before=self._present,
            class_after=after,
            numbers=tuple(
                ComparedNumber(quantity=quantity, value=value, comparison=comparison)
                for quantity, value, comparison in numbers
                if comparison is not None
            ),
            conditions=rule.conditions,
        )
        self._hits.append(hit)

    def _warn(self, index: int, kind: WarningKind, *, detail: str = "") -> None:
        self._warnings.append(RuleWarning(index=index, kind=kind, detail=detail))

    def _decide(self, outcome: Outcome) -> RuleDecision:
        return RuleDecision(
            submission=self._submission,
            usage=self._usage,
            outcome=outcome,
            final_class=self._present,
            hits=tuple(self._hits),
            warnings=tuple(self._warnings),
            valid=Range(self._valid, self._valid_high, self._valid_low),
            needs_usage=self._needs_usage,
            matches=Matches(rules=self._ours, answers=self._answered),
        )


def _beside(last: int | None, counted: int) -> int | None:
    return None if last is None else last - counted


def _least(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)
