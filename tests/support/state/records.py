"""Builds decision records: a test states only what matters to it."""

from datetime import UTC, datetime
from typing import Any

from state.log.records import DecisionRecord

_NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def a_decision(subject: str = "team-a/bert", **fields: Any) -> DecisionRecord:
    """Return a plausible record about `subject`."""
    defaults: dict[str, Any] = {
        "at": _NOON,
        "service": "webhook",
        "kind": "admission",
        "outcome": "lowered",
        "reason": "rule night lowers prod to oppo",
        "latency_seconds": 0.002,
    }
    return DecisionRecord(subject=subject, **{**defaults, **fields})
