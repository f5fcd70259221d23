"""Compares results with `budgets.yaml`.

Budgets are ratios within one run, or, without `to`, plain limits. A short run looks at ratios only,
and at limits that are `exact`: those of values which do not depend on the machine.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import yaml

from bench.report import Result

# A short run says little about tails, and shares its machine: it is to find what grew tenfold.
_QUICK_SLACK = 1.5


def check(
    name: str, results: Sequence[Result], *, is_quick: bool, is_partial: bool = False
) -> list[str]:
    """Say which budgets of a benchmark are exceeded; a budget that matches no result is one.

    `is_partial`: only some cases were asked for, and budgets of others do not count.
    """
    text = files("bench").joinpath("budgets.yaml").read_text(encoding="utf-8")
    budgets = yaml.safe_load(text)[name]
    if is_quick:
        budgets = [
            budget if budget.get("exact") else {**budget, "most": budget["most"] * _QUICK_SLACK}
            for budget in budgets
            if budget.get("exact") or ("to" in budget and "p99" not in budget["metric"])
        ]
    if is_partial:
        budgets = [budget for budget in budgets if _is_measured(budget, results)]
    return [line for budget in budgets if (line := _check(name, budget, results))]


def _is_measured(budget: dict[str, Any], results: Sequence[Result]) -> bool:
    cases = [budget["of"], *([budget["to"]] if "to" in budget else [])]
    return all(_value(budget["metric"], case, results) is not None for case in cases)


def _check(name: str, budget: dict[str, Any], results: Sequence[Result]) -> str | None:
    top = _value(budget["metric"], budget["of"], results)
    if "to" not in budget:
        return _check_plain(name, budget, top)
    bottom = _value(budget["metric"], budget["to"], results)
    if top is None or bottom is None:
        return f"{name} {budget['metric']}: {budget['of']} or {budget['to']} was not measured"
    ratio = top / bottom
    if ratio <= budget["most"]:
        return None
    return (
        f"{name} {budget['metric']} of {budget['of']} is {ratio:.2f} times that of "
        f"{budget['to']}, more than {budget['most']}"
    )


def _check_plain(name: str, budget: dict[str, Any], value: float | None) -> str | None:
    if value is None:
        return f"{name} {budget['metric']}: {budget['of']} was not measured"
    if value <= budget["most"]:
        return None
    return f"{name} {budget['metric']} of {budget['of']} is {value:.2f}, more than {budget['most']}"


def _value(metric: str, case: dict[str, Any], results: Sequence[Result]) -> float | None:
    found = [
        result.value
        for result in results
        if result.metric == metric and case.items() <= dict(result.case).items()
    ]
    return found[0] if found else None
