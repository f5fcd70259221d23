"""Which rules match names, as it was found before: for a log without names.

Pseudonyms cannot satisfy the regular expressions and CEL expressions of rules. So a masked policy
has others in their place, and a row of a masked log says what was found.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import cel

from policy.rules.expression import Expression
from policy.rules.matching import Answer, AskedWhen
from policy.rules.rule_table import RuleTable
from policy.submission import ClassName, Submission

MASKED: Final = "masked"
"""The input of a row that says so."""
_MOST_RULES: Final = 100_000
"""In a row: more are not read, because the row is damaged."""


class RecordedMatches:
    """Answers what rules ask about names by the inputs of a row."""

    def __init__(self, inputs: Mapping[str, Any], table: RuleTable) -> None:
        """`table` are the rules of the masked policy."""
        self._table = table
        self._rules = parse_places(inputs.get("rules", "")) | table.for_all
        self._answers: dict[AskedWhen, Answer] = {
            (ClassName(name), place - 1): answer for place, name, answer in inputs.get("when", ())
        }

    def for_submission(self, submission: Submission) -> int:
        """Return the rules that were found for the submitter and VC."""
        return self._rules

    def for_class(self, name: ClassName) -> int:
        """Return the rules for a class: a masked policy lists the classes of each rule."""
        return self._table.for_class(name)

    def answer(
        self, asked: AskedWhen, when: Expression, inputs: Callable[[], cel.Context]
    ) -> Answer:
        """Return the result of a `when`."""
        return self._answers.get(asked, "its result is not in the log")


def parse_places(text: str) -> int:
    """Read the numbers of rules, from 1, as a bit set: `2,5-7`. Raises ValueError."""
    found = 0
    for first, last in _runs(text.split(",") if text else ()):
        if not 1 <= first <= last <= _MOST_RULES:
            raise ValueError(f"rules {first} to {last} are not between 1 and {_MOST_RULES}")
        found |= (1 << last) - (1 << (first - 1))
    return found


def _runs(parts: Iterable[str]) -> Iterable[tuple[int, int]]:
    for part in parts:
        first, _, last = part.partition("-")
        yield int(first), int(last or first)
