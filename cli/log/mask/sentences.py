"""The sentences of rows, written anew from what is masked. Pure.

A sentence in a row is for people and repeats what its fields say. What cannot be written from the
masked fields alone is left out.
"""

import re
from typing import Any, Final

from state.log.records import DecisionRecord, RowKind

_OWN: Final = re.compile(r"recovered [0-9]+ pods|1 gate is lifted|[0-9]+ gates are lifted")
"""Sentences that name nothing."""


def write_reason(record: DecisionRecord, masked: DecisionRecord) -> str:
    """Write the sentence of a row."""
    decision = masked.details.get("decision")
    if isinstance(decision, dict) and decision.get("is") not in ("release", "reservation"):
        return _of_decision(decision, masked.inputs.get("tried"))
    match record.kind, record.outcome:
        case RowKind.POD, "found" | "released" | "runs":
            return f"on {masked.inputs.get('placement', {}).get('node', '')}"
        case RowKind.POD | RowKind.RELEASE, _ if _OWN.fullmatch(record.reason):
            return record.reason
        case RowKind.BIND, "bound":
            return f"bound to {masked.details.get('node', '')}"
    return ""


def _of_decision(decision: dict[str, Any], tried: dict[str, Any] | None) -> str:
    if decision.get("is") == "rank":
        return f"in level {decision.get('levelName', '')}"
    if decision.get("is") != "place":
        return str(decision.get("reason", ""))
    placed = f"placed on {decision.get('node', '')}"
    if not tried:
        return placed
    why = "; ".join(f"{form}: {text}" for form, text in tried.get("refused", ()))
    return f"{placed}, {tried.get('form', '')}" + (f": {why}" if why else "")
