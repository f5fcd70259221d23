"""`formula` of a level: a CEL expression over the factors that gives seconds of waiting.

The variables are the factors, each a number from 0 to 1, and `worth`, the seconds of the level by
factor: `worth.class * class + worth.shortRun * shortRun * shortRun`. What it gives is clamped to
what the worth of the level adds up to, so that no formula can make a gang wait without bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

import cel

from policy.queues.factors import FactorName
from policy.rules.expression import (
    EvaluationError,
    compile_expression,
    depends_on_values,
    failure_of,
)
from policy.wording import describe

_EXAMPLES: Final[tuple[float, ...]] = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Formula:
    """A compiled formula; equal by its text."""

    source: str
    _program: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.source

    @property
    def cost(self) -> int:
        """What it took to compile, in the unit of `policy.documents.models.CompileBudget`."""
        return 20 * len(self.source)

    def seconds(
        self, factors: Mapping[FactorName, float], worth: Mapping[FactorName, float]
    ) -> float:
        """Return the seconds of waiting that the formula gives, before they are clamped.

        Raises EvaluationError for what is no number.
        """
        values: dict[str, object] = {name.value: value for name, value in factors.items()}
        values["worth"] = {name.value: worth.get(name, 0.0) for name in FactorName}
        try:
            result = self._program.execute(cel.Context(values))
        except Exception as exc:
            raise EvaluationError(failure_of(exc)) from exc
        if isinstance(result, bool) or not isinstance(result, int | float):
            raise EvaluationError(f"its result is {describe(result)} instead of a number")
        if not isfinite(result):
            raise EvaluationError("its result is not a finite number") from OverflowError()
        return float(result)


def parse_formula(value: object) -> Formula:
    """Compile a formula. Raises ValueError in plain words."""
    program = compile_expression(value, variables=(*(name.value for name in FactorName), "worth"))
    formula = Formula(str(value), _program=program)
    for example in _EXAMPLES:
        _check_result(formula, example)
    return formula


def _check_result(formula: Formula, example: float) -> None:
    """Evaluate an example: types do not depend on the gang, so this finds wrong ones."""
    try:
        formula.seconds(
            {name: example for name in FactorName}, {name: 3600.0 for name in FactorName}
        )
    except EvaluationError as exc:
        if not depends_on_values(exc.__cause__):
            is_mixed = isinstance(exc.__cause__, TypeError)
            hint = "; numbers need a decimal point, such as 2.0 * class" if is_mixed else ""
            raise ValueError(f"is not a number of seconds: {exc}{hint}") from exc
