"""The result of a search, as JSON for programs. Pure."""

from math import isinf
from typing import Any

from cli.tune.report import date_text
from cli.tune.result import CANNOT_KNOW, Asked, Result
from timemachine.tuning.bootstrap import Interval
from timemachine.tuning.candidates import Candidate
from timemachine.tuning.stretches import Stretch
from timemachine.tuning.verdict import Change, Judged


def to_json(result: Result) -> dict[str, Any]:
    """Return everything that the text says; waits are in seconds."""
    found, verdict = result.found, result.verdict
    return {
        "better": result.best is not None,
        "best": result.best.candidate.name if result.best is not None else None,
        **_asked(result.asked),
        "documents": result.candidates,
        "evaluations": found.played + found.kept,
        "cutShort": found.was_cut,
        "trainingFigures": [
            {**_judged(one.judged), "onFrontier": one.is_on_frontier} for one in result.training
        ],
        "confidence": verdict.confidence if verdict is not None else None,
        "finalists": [
            {
                **_judged(one),
                "keepsConstraints": one.keeps_constraints,
                "document": one.candidate.tree,
            }
            for one in (verdict.finalists if verdict is not None else ())
        ],
        "notJudged": [one.name for one in found.unjudged],
        "unknown": [*CANNOT_KNOW, *result.asked.notes],
    }


def _asked(asked: Asked) -> dict[str, Any]:
    return {
        "source": asked.source,
        "seed": asked.seed,
        "training": [_stretch(one) for one in asked.division.training],
        "played": [_stretch(one) for one in asked.weeks],
        "judging": _stretch(asked.division.judging),
        "judgedGangs": asked.judged_gangs,
        "objectives": list(asked.criteria.objectives),
        "vcTolerance": asked.criteria.vc_tolerance,
        "limits": {name.value: part for name, part in asked.criteria.limits.items()},
        "large": asked.large,
        "searched": [
            {"field": one.path, "low": one.write(one.low), "high": one.write(one.high)}
            for one in asked.parameters
        ],
        "notSearched": [
            {"field": one.path, "reason": why} for one, why in asked.unsearched.items()
        ],
    }


def _stretch(stretch: Stretch) -> dict[str, str]:
    return {"from": date_text(stretch.first), "to": date_text(stretch.last)}


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "name": judged.candidate.name,
        "changes": _values(judged.candidate),
        "objectives": {name.value: _change(one) for name, one in judged.changes.items()},
        "vcs": {
            name: {
                "gangs": one.gangs,
                "judged": one.is_judged,
                "worse": one.is_worse,
                "mean": _change(one.mean),
            }
            for name, one in judged.vcs.items()
        },
    }


def _values(candidate: Candidate) -> dict[str, Any]:
    return {one.path: one.write(value) for one, value in candidate.values.items()}


def _change(change: Change) -> dict[str, Any]:
    return {
        "before": change.before,
        "after": change.after,
        "difference": _interval(change.difference),
    }


def _interval(interval: Interval) -> dict[str, float | None]:
    return {
        "value": interval.value,
        "low": None if isinf(interval.low) else interval.low,
        "high": None if isinf(interval.high) else interval.high,
    }
