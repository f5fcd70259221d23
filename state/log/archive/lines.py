"""The lines of a file: rows as JSON objects, the header and the last line. Pure.

Whatever a file contains, reading a line either returns what a log can contain or raises ValueError.
"""

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from state.log.records import DecisionRecord, LoggedDocument
from state.log.stretches import EpochStretch

FORMAT: Final = "cellgate-log"
VERSION: Final = 1
_TEXTS: Final = ("service", "kind", "subject", "outcome", "reason")
_OPTIONAL_TEXTS: Final = ("pod_uid", "policy_version")
_NUMBERS: Final = ("epoch", "sequence")
_LARGEST: Final = 2**63 - 1


class OtherVersionError(ValueError):
    """The file was written by a program that writes another version of the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Which part of a log a file has."""

    service: str
    """The service whose epochs are complete from their first row on."""
    epochs: tuple[EpochStretch, ...]
    since: str | None = None
    until: str | None = None
    subject: str | None = None
    """What was asked for, as texts for people."""
    is_masked: bool = False
    """Whether it has pseudonyms instead of names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last line."""

    rows: int
    sha256: str


def encode_header(header: Header) -> bytes:
    """Return the first line."""
    epochs = [
        {"epoch": one.epoch, "first": one.first, "last": one.last, "beganAt": one.began_at}
        for one in header.epochs
    ]
    asked = {"from": header.since, "to": header.until, "subject": header.subject}
    told = {"format": FORMAT, "version": VERSION, "service": header.service, **asked}
    if header.is_masked:
        told["masked"] = True
    return orjson.dumps({**told, "epochs": epochs})


def decode_header(line: bytes) -> Header:
    """Read the first line. Raises ValueError, or OtherVersionError for another version."""
    told = _object(line)
    if told.get("format") != FORMAT:
        raise ValueError("its first line is not a header")
    version = told.get("version")
    if version != VERSION:
        raise OtherVersionError(f"version {version!r}")
    return Header(
        service=_text(told, "service"),
        epochs=tuple(map(_epoch, _list(told, "epochs"))),
        since=_optional(told, "from"),
        until=_optional(told, "to"),
        subject=_optional(told, "subject"),
        is_masked=told.get("masked", False) is not False,
    )


def encode_end(end: End) -> bytes:
    """Return the last line."""
    return orjson.dumps({"end": True, "rows": end.rows, "sha256": end.sha256})


def encode_row(record: DecisionRecord) -> bytes:
    """Return the line of a row; facts about runs are left out, they are in the history."""
    row: dict[str, Any] = {"key": str(record.key), "at": record.at}
    row |= {name: getattr(record, name) for name in _TEXTS}
    row["latency_seconds"] = record.latency_seconds
    for name in (*_OPTIONAL_TEXTS, *_NUMBERS):
        if (value := getattr(record, name)) is not None:
            row[name] = value
    row |= {"details": record.details, "inputs": record.inputs}
    if record.documents:
        row["documents"] = [
            {"kind": document.kind, "content": document.content} for document in record.documents
        ]
    return orjson.dumps(row)


def decode_line(line: bytes) -> DecisionRecord | End:
    """Read the line of a row, or the last line. Raises ValueError for anything else."""
    told = _object(line)
    if "end" in told:
        return End(rows=_number(told, "rows"), sha256=_text(told, "sha256"))
    latency = told.get("latency_seconds")
    if latency is not None and not isinstance(latency, int | float):
        raise ValueError("latency_seconds is not a number")
    return DecisionRecord(
        key=_key(told),
        at=_moment(told, "at"),
        service=_text(told, "service"),
        kind=_text(told, "kind"),
        subject=_text(told, "subject"),
        outcome=_text(told, "outcome"),
        reason=_text(told, "reason"),
        latency_seconds=math.nan if latency is None else float(latency),
        pod_uid=_optional(told, "pod_uid"),
        policy_version=_optional(told, "policy_version"),
        details=_mapping(told, "details"),
        inputs=_mapping(told, "inputs"),
        epoch=_number(told, "epoch") if "epoch" in told else None,
        sequence=_number(told, "sequence") if "sequence" in told else None,
        documents=tuple(map(_document, _list(told, "documents"))),
    )


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise ValueError("it is not JSON") from exc
    if not isinstance(told, dict):
        raise ValueError("it is not a JSON object")
    return told


def _epoch(told: object) -> EpochStretch:
    if not isinstance(told, dict):
        raise ValueError("an epoch of its header is not a JSON object")
    return EpochStretch(
        epoch=_number(told, "epoch"),
        first=_number(told, "first"),
        last=_number(told, "last"),
        began_at=_moment(told, "beganAt"),
    )


def _document(told: object) -> LoggedDocument:
    if not isinstance(told, dict):
        raise ValueError("a document is not a JSON object")
    return LoggedDocument(kind=_text(told, "kind"), content=_text(told, "content"))


def _key(told: Mapping[str, Any]) -> uuid.UUID:
    try:
        return uuid.UUID(_text(told, "key"))
    except ValueError as exc:
        raise ValueError("key is not a UUID") from exc


def _moment(told: Mapping[str, Any], name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(told, name))
        in_utc = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError) as exc:  # OverflowError: the year 10000 in UTC
        raise ValueError(f"{name} is not a time") from exc
    if in_utc is None:
        raise ValueError(f"{name} has no time zone")
    return in_utc


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def _optional(told: Mapping[str, Any], name: str) -> str | None:
    return None if told.get(name) is None else _text(told, name)


def _number(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is not a number of a row")
    return value


def _list(told: Mapping[str, Any], name: str) -> list[Any]:
    value = told.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _mapping(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = told.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")
    return value
