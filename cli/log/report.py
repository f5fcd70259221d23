"""The result of a replay, as text for people and as JSON for programs. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cli.log.admissions import admissions_json
from cli.log.texts import counted, time_text, wrap
from extender.cluster.replay import Difference, Report
from state.log.records import DecisionRecord
from webhook.records.replay import AdmissionReport

NOT_DECIDED: Final = (
    "which gang is planned next",
    "when reservations are looked at, and why they end",
)
"""What a replay does not decide again yet."""

_NO_TEXT: Final = ("wording", "reason", "arguments")


@dataclass(slots=True, kw_only=True)
class EpochResult:
    """The replay of one epoch, and what it says of one gang, if one was asked for."""

    subject: str | None = None
    began_early: bool = False
    first: int = 1
    report: Report = field(default_factory=lambda: Report(epoch=0))
    own_decisions: int = 0
    own_different: int = 0
    own_first: Difference | None = None

    def note(self, record: DecisionRecord, difference: Difference | None) -> None:
        """Count a row of the gang that was asked for."""
        if record.subject != self.subject or "decision" not in record.details:
            return
        self.own_decisions += 1
        if difference is not None:
            self.own_different += 1
            self.own_first = self.own_first or difference


def format_epoch(result: EpochResult) -> Iterator[str]:
    """Say what came of one epoch, and show its first difference."""
    report = result.report
    span = ""
    if report.first_at is not None and report.last_at is not None:
        span = f", {time_text(report.first_at)} to {time_text(report.last_at)}"
    counts = f"{counted(report.rows, 'row')}, {counted(report.decisions, 'decision')}"
    yield f"epoch {report.epoch}{span}: {counts}: {_verdict(report)}"
    if result.began_early:
        yield "  it began before --from, so it was decided from its first row on"
    for gap in report.missing:
        yield f"  {gap}: later decisions may differ for that reason alone"
    if report.missing_rows > sum(gap.last - gap.first + 1 for gap in report.missing):
        yield f"  {report.missing_rows:,} rows are missing in all"
    if result.subject is not None:
        own = counted(result.own_decisions, "decision")
        told = f"{result.own_different:,} differ" if result.own_different else "none differs"
        yield f"  {result.subject}: {own}, {told}"
    if report.stopped is not None:
        stopped = report.stopped
        yield from wrap(
            f"row {stopped.sequence} ({stopped.subject}) cannot be replayed: {stopped.error}", 2
        )
    if report.differences:
        yield from _format_difference("first difference", report.differences[0])
    if result.own_first is not None and result.own_first is not report.differences[0]:
        yield from _format_difference(f"first difference of {result.subject}", result.own_first)


def format_summary(results: Sequence[EpochResult], admissions: AdmissionReport) -> Iterator[str]:
    """Say what came of all epochs and admissions, and what was not decided again."""
    reports = [result.report for result in results]
    decisions = sum(report.decisions for report in reports) + admissions.decisions
    different = sum(report.different for report in reports) + admissions.different
    if admissions.is_identical and all(report.is_identical for report in reports):
        yield f"identical: {counted(decisions, 'decision')}{_kinds(reports, admissions)}"
    else:
        missing = sum(report.missing_rows for report in reports)
        stopped = sum(report.stopped is not None for report in reports)
        yield (
            f"not identical: {different:,} of {counted(decisions, 'decision')} differ, "
            f"{counted(missing, 'row')} missing, "
            f"{counted(stopped, 'epoch')} not replayed to the end"
        )
    yield f"not decided again yet: {', '.join(NOT_DECIDED)}"


def _kinds(reports: Sequence[Report], admissions: AdmissionReport) -> str:
    """Say of which kinds the decisions are, if there are several."""
    found = sum((report.of_kind for report in reports), Counter[str]())
    if admissions.decisions:
        found["admission"] += admissions.decisions
    told = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.items()))
    return f" ({told})" if len(found) > 1 else ""


def to_json(results: Sequence[EpochResult], admissions: AdmissionReport) -> dict[str, Any]:
    """Return everything that the text says, and the further differences."""
    is_identical = all(result.report.is_identical for result in results)
    return {
        "identical": is_identical and admissions.is_identical,
        "epochs": [_epoch_json(result) for result in results],
        "admissions": admissions_json(admissions),
        "notDecidedAgain": NOT_DECIDED,
    }


def _epoch_json(result: EpochResult) -> dict[str, Any]:
    report, stopped = result.report, result.report.stopped
    own = {
        "name": result.subject,
        "decisions": result.own_decisions,
        "different": result.own_different,
        "firstDifference": None if result.own_first is None else _difference_json(result.own_first),
    }
    return {
        "epoch": report.epoch,
        "from": report.first_at,
        "to": report.last_at,
        "beganBeforeFrom": result.began_early,
        "rows": report.rows,
        "decisions": report.decisions,
        "decisionsOfKind": dict(sorted(report.of_kind.items())),
        "identical": report.is_identical,
        "different": report.different,
        "missingRows": report.missing_rows,
        "missing": [{"first": gap.first, "last": gap.last} for gap in report.missing],
        "stopped": None
        if stopped is None
        else {"row": stopped.sequence, "subject": stopped.subject, "error": stopped.error},
        "differences": [_difference_json(one) for one in report.differences],
        "subject": own if result.subject is not None else None,
    }


def _difference_json(difference: Difference) -> dict[str, Any]:
    record, known = difference.record, difference.known
    return {
        "row": difference.sequence,
        "at": record.at,
        "subject": difference.subject,
        "kind": record.kind,
        "pod": record.details.get("pod"),
        "logged": difference.logged,
        "replayed": difference.replayed,
        "inputs": record.inputs,
        "known": {
            "nodes": known.nodes,
            "pods": known.pods,
            "gangs": known.gangs,
            "document": known.document,
            "documentRow": known.document_row,
        },
    }


def _format_difference(title: str, difference: Difference) -> Iterator[str]:
    record, known = difference.record, difference.known
    yield f"  {title}: row {difference.sequence}, {difference.subject}, {time_text(record.at)}"
    yield from wrap(f"logged:   {_decision(difference.logged)}", 4)
    yield from wrap(f"replayed: {_decision(difference.replayed)}", 4)
    unequal = [
        name
        for name in dict.fromkeys((*difference.logged, *difference.replayed))
        if name != "wording" and difference.logged.get(name) != difference.replayed.get(name)
    ]
    yield from wrap(f"unequal: {', '.join(unequal)}", 4)
    yield "    it depended on:"
    for name, value in record.inputs.items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield from wrap(f"{name}: {text}", 6)
    if known.document is None:
        yield "      cluster document: none"
    else:
        put = f"put in force by row {known.document_row}"
        yield f"      cluster document: {known.document[:12]}, {put}"
    pods = f"{counted(known.pods, 'pod')} in {counted(known.gangs, 'gang')}"
    yield f"      known: {counted(known.nodes, 'node')}, {pods} with places"


def _decision(row: Mapping[str, Any]) -> str:
    """Say in one line what was decided."""
    what = str(row.get("is"))
    if "reason" in row:
        what += f" ({row.get('code')}): {row['reason']}"
    rest = {
        name: value
        for name, value in row.items()
        if name not in ("is", "code", *_NO_TEXT) and value not in ([], None)
    }
    return what + (f" {orjson.dumps(rest).decode()}" if rest else "")


def _verdict(report: Report) -> str:
    if report.is_identical:
        return "identical"
    if report.different:
        return f"{report.different:,} differ"
    if report.stopped is not None:
        return "not replayed to the end"
    return f"{counted(report.missing_rows, 'row')} missing"
