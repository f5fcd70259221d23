"""The document that was found, as a file: complete, valid, with a comment that says where from."""

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cli.tune.report import change_text, date_text, document_text, tolerance_text
from cli.tune.result import Result
from policy.errors import SettingsError
from policy.parser import DocumentKind, parse_document
from policy.wording import moment, plain
from timemachine.tuning.verdict import Judged

_COMMENT_CHARS: Final = 300


def save_document(path: Path, result: Result, *, now: datetime) -> None:
    """Write the best document. Raises SettingsError if the file cannot be written."""
    assert result.best is not None
    text = write_document(result, result.best, now=now)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise SettingsError(f"cannot write {path}: {exc.strerror}") from exc


def write_document(result: Result, best: Judged, *, now: datetime) -> str:
    """Return the text of a document with its comment; it is read once more, as a check."""
    lines = (plain(line, limit=_COMMENT_CHARS) for line in _comment(result, best, now))
    text = "".join(f"# {line}\n" for line in lines) + best.candidate.text
    parse_document(text, kind=DocumentKind.QUEUES)
    return text


def _comment(result: Result, best: Judged, now: datetime) -> Iterator[str]:
    asked = result.asked
    training, judging = asked.division.training, asked.division.judging
    yield f"Written by cellgate tune {version('cellgate')} at {moment(now)}. It is not applied."
    yield f"Changed: {document_text(best.candidate)}."
    yield f"Arrivals: {asked.source}."
    yield (
        f"Trained on {date_text(training[0].first)} to {date_text(training[-1].last)}, seed "
        f"{asked.seed}; judged on {date_text(judging.first)} to {date_text(judging.last)}."
    )
    for objective in asked.criteria.objectives:
        yield f"{change_text(objective, best.changes[objective], large=asked.large)}."
    if asked.criteria.vc_tolerance is not None:
        yield f"On the judging days {tolerance_text(asked.criteria)}."
    yield "Other sections are those of the document that was in force; its comments are not kept."
