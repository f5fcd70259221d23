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
from policy.wording import describe, listing

_EXAMPLES: Final[tuple[Mapping[FactorName, float], ...]] = (
    *({name: value for name in FactorName} for value in (0.0, 0.5, 1.0)),
    {name: place / len(FactorName) for place, name in enumerate(FactorName)},
)
"""All factors alike, and all of them different: a formula may divide by a difference."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A compiled formula; equal by its text."""

    source: str
    factors: tuple[FactorName, ...] = field(compare=False)
    """The factors that it reads."""
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
    written = frozenset(program.variables())
    factors = tuple(name for name in FactorName if name.value in written)
    formula = Formula(str(value), factors=factors, _program=program)
    failures = [failure for example in _EXAMPLES if (failure := _failure(formula, example))]
    if len(failures) == len(_EXAMPLES):
        raise ValueError(f"gives no number of seconds for any gang: {failures[0]}")
    return formula


def _failure(formula: Formula, example: Mapping[FactorName, float]) -> EvaluationError | None:
    """Evaluate an example: types and keys do not depend on the gang, so this finds wrong ones.

    Return what failed only for some gangs.
    """
    try:
        formula.seconds(example, {name: 3600.0 for name in FactorName})
    except EvaluationError as exc:
        is_unknown = isinstance(exc.__cause__, KeyError)  # `worth` has a value for every factor
        if is_unknown or not depends_on_values(exc.__cause__):
            raise ValueError(f"is not a number of seconds: {exc}{_hint(exc.__cause__)}") from exc
        return exc
    return None


def _hint(error: BaseException | None) -> str:
    """Say what to write instead of what the library cannot evaluate."""
    match error:
        case TypeError():
            return "; numbers need a decimal point, such as 2.0 * class"
        case KeyError():
            return f"; the keys of worth are {listing(tuple(FactorName))}"
        case _:
            return ""
