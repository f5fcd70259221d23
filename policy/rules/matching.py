"""Which rules match the names of a submission: found by the table, or as they were found before.

A rule looks at names by regular expressions (`user`, `group`, `vc`, `class`) and by `when`. Whether
these match is the only part of a decision that depends on the text of names. So all of it is asked
of a `Matcher`, and kept in the decision as `Matches`: a program that must not see names can be
given what was found instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import cel

from policy.rules.expression import EvaluationError, Expression
from policy.submission import ClassName, Submission

Answer = bool | str
"""Whether a `when` holds, or why it is neither true nor false."""

AskedWhen = tuple[ClassName, int]
"""In which class, as lowered so far, which rule asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What was found about the names of one submission."""

    rules: int = 0
    """The rules for this submitter and VC in any class, as a bit set."""
    answers: Mapping[AskedWhen, Answer] = field(default_factory=dict)
    """The results of each `when` that was evaluated."""

    def merged(self, other: "Matches") -> "Matches":
        """Return what both found about the same submission."""
        if not other.answers or self.answers == other.answers:
            return self
        return Matches(rules=self.rules, answers={**self.answers, **other.answers})


class Matcher(Protocol):
    """Finds which rules match names."""

    def for_submission(self, submission: Submission) -> int:
        """Return, as a bit set, the rules for this submitter and VC in any class."""

    def for_class(self, name: ClassName) -> int:
        """Return, as a bit set, the rules for this class."""

    def answer(
        self, asked: AskedWhen, when: Expression, inputs: Callable[[], cel.Context]
    ) -> Answer:
        """Evaluate the `when` of a rule."""


def evaluate(when: Expression, inputs: Callable[[], cel.Context]) -> Answer:
    """Evaluate a `when` by its text."""
    try:
        return when.holds(inputs())
    except EvaluationError as exc:
        return str(exc)
