"""The result of a search, as text for people. Pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import isinf
from typing import Final

from cli.tune.result import CANNOT_KNOW, Result
from policy.queues.durations import DAY, HOUR, MINUTE, format_duration
from policy.wording import count_of
from timemachine.tuning.bootstrap import Interval
from timemachine.tuning.candidates import CURRENT, Candidate
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.verdict import Change, Judged, Verdict

_INDENT: Final = "  "
_WEEK_DAYS: Final = 7


def format_result(result: Result) -> Iterator[str]:
    """Say what was asked, how the documents fared, and whether one is better."""
    yield from _format_asked(result)
    yield ""
    yield from _format_training(result)
    yield ""
    yield from _format_verdict(result)
    yield ""
    yield "What a simulation cannot know:"
    for note in (*CANNOT_KNOW, *result.asked.notes):
        yield f"{_INDENT}{note}"


# -- what was asked


def _format_asked(result: Result) -> Iterator[str]:
    asked, found = result.asked, result.found
    training, judging = asked.division.training, asked.division.judging
    yield f"arrivals      {asked.source}"
    parts = count_of(len(training), _part(result))
    yield (
        f"training      {_span(training[0].first, training[-1].last)}; "
        f"{len(asked.weeks)} of {parts} for the search, seed {asked.seed}"
    )
    gangs = f"{asked.judged_gangs:,} gangs"
    yield f"judging       {_span(judging.first, judging.last)}, {gangs}"
    yield f"searched      {'; '.join(map(str, asked.parameters)) or 'nothing'}"
    for parameter, why in asked.unsearched.items():
        yield f"not searched  {parameter.name}: {why}"
    kept = f", {found.kept:,} of them from the file" if found.kept else ""
    played = count_of(found.played + found.kept, "evaluation")
    tried = count_of(result.candidates, "document")
    yield f"played        {tried} besides the current one, {played}{kept}"
    if found.was_cut:
        yield "              The time was short: some documents played fewer weeks."


def _part(result: Result) -> str:
    """Name what a training stretch is: a week, or less of a short history."""
    return "week" if len(result.asked.division.training[0].days) >= _WEEK_DAYS else "part"


def _span(first: int, last: int) -> str:
    return f"{date_text(first)} to {date_text(last)}, {count_of(last - first + 1, 'day')}"


def date_text(day: int) -> str:
    """Write a day."""
    return f"{datetime.fromtimestamp(day * DAY, UTC):%Y-%m-%d}"


# -- the training weeks


def _format_training(result: Result) -> Iterator[str]:
    if not result.training:
        yield "No document has played any training day."
        return
    asked = result.asked
    weeks = count_of(result.weeks, _part(result))
    yield f"Training, {weeks} (* no other document is better in everything):"
    rows = [
        [
            "",
            "document",
            *(objective_title(one, asked.large) for one in columns_of(result)),
            "changes",
        ]
    ]
    for one in result.training:
        judged = one.judged
        cells = [_cell(judged, what) for what in columns_of(result)]
        mark = "*" if one.is_on_frontier else ""
        rows.append([mark, judged.candidate.name, *cells, document_text(judged.candidate)])
    yield from _table(rows)


def _cell(judged: Judged, objective: Objective) -> str:
    change = judged.changes[objective]
    text = hours(change.after)
    if judged.candidate.name == CURRENT or change.part is None:
        return text
    return f"{text} {_percent(change.part)}"


def columns_of(result: Result) -> list[Objective]:
    """Return the objectives, those that were asked for first."""
    return list(dict.fromkeys((*result.asked.criteria.objectives, *Objective)))


def document_text(candidate: Candidate) -> str:
    """Say what a document changes."""
    return (
        ", ".join(f"{one.name} {one.write(value)}" for one, value in candidate.values.items())
        or "nothing"
    )


# -- the judging days


def _format_verdict(result: Result) -> Iterator[str]:
    verdict = result.verdict
    if verdict is None:
        yield _why_no_verdict(result)
        return
    asked = result.asked
    yield f"Judging days, with intervals that all hold together ({verdict.confidence * 100:g} %):"
    rows = [
        [
            "document",
            *(objective_title(one, asked.large) for one in columns_of(result)),
            "VCs worse off",
        ]
    ]
    first = verdict.finalists[0]
    current = [hours(first.changes[one].before) for one in columns_of(result)]
    rows.append([CURRENT, *current, ""])
    for judged in verdict.finalists:
        cells = [_cell(judged, one) for one in columns_of(result)]
        rows.append([judged.candidate.name, *cells, ", ".join(judged.worse_vcs) or "none"])
    yield from _table(rows)
    yield ""
    yield from _format_vcs(result.best or first)
    yield ""
    yield from _conclusion(result, verdict)
    for candidate in result.found.unjudged:
        yield f"{candidate.name} was not judged: the time was over."


def _why_no_verdict(result: Result) -> str:
    if not result.asked.parameters:
        return "No document was tried: nothing that is allowed makes a difference to these gangs."
    if result.found.current is None or result.found.unjudged:
        return (
            "No document was judged: the time was over. Give more --minutes; with --resume what "
            "is finished is not played again."
        )
    return "No document was tried: every one in the ranges is refused, or the current one."


def _format_vcs(judged: Judged) -> Iterator[str]:
    yield f"VCs under {judged.candidate.name}, mean wait:"
    rows = [["VC", "gangs", "before", "after", "difference", ""]]
    for vc, change in judged.vcs.items():
        mean = change.mean
        difference = f"{_signed(mean.difference.value)} {_times(mean.difference)}"
        remark = "worse off" if change.is_worse else "" if change.is_judged else "too few gangs"
        cells = [f"{change.gangs:,}", hours(mean.before), hours(mean.after), difference, remark]
        rows.append([vc or "-", *cells])
    yield from _table(rows)


def _conclusion(result: Result, verdict: Verdict) -> Iterator[str]:
    asked = result.asked
    if verdict.best is not None:
        yield f"{verdict.best.candidate.name} is better than the current document:"
        for objective in asked.criteria.objectives:
            change = verdict.best.changes[objective]
            yield f"{_INDENT}{change_text(objective, change, large=asked.large)}"
        yield f"{_INDENT}changes: {document_text(verdict.best.candidate)}"
        if asked.criteria.vc_tolerance is not None:
            yield f"{_INDENT}{tolerance_text(asked.criteria)}"
        return
    yield "No document is better than the current one beyond noise. Keep the current one."
    for judged in verdict.finalists:
        yield f"{_INDENT}{judged.candidate.name}: {_why_not(result, judged)}"


def _why_not(result: Result, judged: Judged) -> str:
    if judged.worse_vcs:
        return f"worse off: {', '.join(judged.worse_vcs)}"
    if judged.broken:
        return f"beyond its limit: {', '.join(judged.broken)}"
    change = judged.changes[result.objective]
    return f"{change_text(result.objective, change, large=result.asked.large)}: may be noise"


def tolerance_text(criteria: Criteria) -> str:
    """Say what a VC may wait longer."""
    assert criteria.vc_tolerance is not None
    slack = format_duration(criteria.vc_slack)
    percent = f"{criteria.vc_tolerance * 100:g} %"
    return f"no VC waits longer by more than {percent} of its mean wait and {slack}"


def change_text(objective: Objective, change: Change, *, large: int) -> str:
    """Say how an objective changes: `mean wait 13.0 h to 4.1 h, -69 % [-73, -62]`."""
    part = f", {_percent(change.part)}" if change.part is not None else ""
    title = objective_title(objective, large)
    return f"{title} {hours(change.before)} to {hours(change.after)}{part}"


def objective_title(objective: Objective, large: int) -> str:
    """Name an objective; large gangs have so many leaf cells or more."""
    match objective:
        case Objective.MEAN:
            return "mean wait"
        case Objective.LARGE:
            return f"p95 of gangs of {large}+"
        case Objective.FAIRNESS:
            return "longest mean of a VC"


def _percent(part: Interval) -> str:
    low, high = (_whole(one * 100) for one in (part.low, part.high))
    return f"{_whole(part.value * 100)} % [{low}, {high}]"


def _whole(number: float) -> str:
    return "?" if isinf(number) else f"{number:+.0f}"


def hours(seconds: float) -> str:
    """Write a wait, so that waits of a column can be compared: `13.0 h`, `4.5 min`."""
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:.1f} min"


def _signed(seconds: float) -> str:
    return ("-" if seconds < 0 else "+") + hours(abs(seconds))


def _times(interval: Interval) -> str:
    if isinf(interval.low) or isinf(interval.high):
        return "[?]"
    return f"[{_signed(interval.low)}, {_signed(interval.high)}]"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield _INDENT + "  ".join(cells).rstrip()
