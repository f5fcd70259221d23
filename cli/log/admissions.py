"""The replay of admission decisions, as text for people and as JSON for programs. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from cli.log.texts import counted, time_text, wrap
from webhook.records.replay import AdmissionDifference, AdmissionReport

_SHOWN: tuple[str, ...] = ("user", "group", "vc", "requestedClass", "leafCount")
"""The details of a row that its decision depended on."""


def format_admissions(report: AdmissionReport) -> Iterator[str]:
    """Say what came of the admission decisions; nothing if there are none."""
    if report.first_at is None or report.last_at is None:
        return
    span = f"{time_text(report.first_at)} to {time_text(report.last_at)}"
    counts = f"{counted(report.rows, 'row')}, {counted(report.decisions, 'decision')}"
    yield f"admission, {span}: {counts}: {_verdict(report)}"
    if report.masked:
        rules = "whether rules match names is taken from the log, and not decided again"
        yield f"  {counted(report.masked, 'decision')} with pseudonyms: {rules}"
    if report.older:
        yield f"  {counted(report.older, 'row')} not decided again (written by an earlier version)"
    if report.objects:
        objects = counted(report.objects, "refusal")
        yield f"  {objects} of invalid objects not decided again: the log has no objects"
    if report.lacking:
        lacking = counted(report.lacking, "decision")
        yield f"  {lacking} whose policy is not in the log, or cannot be read by this release"
    if report.differences:
        yield from _format_difference(report.differences[0])


def _verdict(report: AdmissionReport) -> str:
    if report.different:
        return f"{report.different:,} differ"
    if report.lacking:
        return f"{report.lacking:,} without a policy"
    return "identical" if report.decisions else "not decided again"


def _format_difference(difference: AdmissionDifference) -> Iterator[str]:
    record = difference.record
    yield f"  first difference: {record.subject}, {time_text(record.at)}"
    yield from wrap(f"logged:   {_decision(difference.logged)}", 4)
    yield from wrap(f"replayed: {_decision(difference.replayed)}", 4)
    yield from wrap(f"unequal: {', '.join(difference.unequal)}", 4)
    yield "    it depended on:"
    asked = {name: record.details[name] for name in _SHOWN if name in record.details}
    for name, value in {**asked, **record.inputs}.items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield from wrap(f"{name}: {text}", 6)


def _decision(row: Mapping[str, Any]) -> str:
    """Say in one line what was decided."""
    if "error" in row:
        return str(row["error"])
    rest = {name: value for name, value in row.items() if name not in ("outcome", "reason")}
    return f"{row['outcome']}: {row['reason']} {orjson.dumps(rest).decode()}"


def admissions_json(report: AdmissionReport) -> dict[str, Any]:
    """Return everything that the text says, and the further differences."""
    return {
        "from": report.first_at,
        "to": report.last_at,
        "rows": report.rows,
        "decisions": report.decisions,
        "identical": report.is_identical,
        "different": report.different,
        "namesNotMatchedAgain": report.masked,
        "writtenByEarlierVersion": report.older,
        "invalidObjects": report.objects,
        "withoutPolicy": report.lacking,
        "differences": [_difference_json(one) for one in report.differences],
    }


def _difference_json(difference: AdmissionDifference) -> dict[str, Any]:
    record = difference.record
    return {
        "key": str(record.key),
        "at": record.at,
        "subject": record.subject,
        "logged": difference.logged,
        "replayed": difference.replayed,
        "unequal": difference.unequal,
        "details": record.details,
        "inputs": record.inputs,
    }
