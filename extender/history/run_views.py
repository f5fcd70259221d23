"""The JSON and CSV of runs and usage."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, Final

from policy.wording import moment
from state.history.facts import Certainty, Member, Prediction
from state.history.runs import Hours, StoredRun

USAGE_FIELDS: Final = {
    "user": "user_name",
    "group": "group_name",
    "vc": "vc",
    "class": "class_name",
    "leafType": "leaf_type",
}
"""By what usage can be summed, and the field of `Hours` for each."""
_MEMBER_TIMES: Final = ("created", "bound", "started", "ended")
_MEMBER_HIDDEN: Final = ("certainty", "stamp", "told")
_SPREADSHEET: Final = ("=", "+", "-", "@", "\t", "\r")
"""With these a text is a formula for spreadsheet programs."""


def show_run(
    stored: StoredRun, *, with_members: bool, cancelled: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Show a run; a fact that is not known is left out. `cancelled` says which user ended it."""
    facts = stored.facts
    shown = {
        "run": facts.run,
        "gang": facts.gang,
        "attempt": stored.attempt,
        "workload": facts.workload,
        "workloadUid": facts.workload_uid,
        "user": facts.user_name,
        "group": facts.group_name,
        "vc": facts.vc,
        "requestedClass": facts.requested_class,
        "grantedClass": facts.granted_class,
        "leafType": facts.leaf_type,
        "leafCells": facts.leaf_count,
        "memberCount": facts.member_count,
        "labels": dict(facts.labels) or None,
        "image": facts.image,
        "expectedSeconds": facts.estimate_seconds,
        "limitSeconds": facts.limit_seconds,
        "predictions": _show_predictions(facts.predictions) or None,
        "submitted": _time(facts.asked_at),
        "admitted": _time(facts.admitted_at),
        "released": _time(facts.released_at),
        "bound": _time(facts.started_at),
        "started": _time(facts.running_at),
        "ended": _time(facts.ended_at),
        "outcome": facts.outcome,
        "reason": cancelled["reason"] if cancelled else facts.reason,
        "cancelledBy": cancelled["user"] if cancelled else None,
        "preemptedFor": facts.preempted_for,
        "presumed": facts.certainty is Certainty.PRESUMED or None,
        "restarts": facts.restarts,
        "nodes": list(facts.nodes) or None,
        "leafCellHours": round(stored.leaf_cell_hours, 6),
        "members": _show_members(facts.members) if with_members else None,
    }
    return {key: value for key, value in shown.items() if value is not None}


def _show_predictions(predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    return {
        kind: {
            key: moment(value) if key == "at" and isinstance(value, int | float) else value
            for key, value in told.items()
            if key != "stamp"
        }
        for kind, told in predictions.items()
    }


def _show_members(members: Mapping[str, Member]) -> list[dict[str, Any]]:
    shown = [_show_member(uid, member) for uid, member in members.items()]
    return sorted(shown, key=lambda member: (member["created"], member["name"], member["uid"]))


def _show_member(uid: str, member: Member) -> dict[str, Any]:
    """Show a pod as its run is shown: the same names, and times in the same form."""
    shown: dict[str, Any] = {"name": member["name"], "uid": uid}
    for key, value in member.items():
        if key in _MEMBER_TIMES:
            shown[key] = _time(datetime.fromisoformat(str(value)))
        elif key not in _MEMBER_HIDDEN:
            shown["outcome" if key == "how" else key] = value
    return shown


def sum_usage(hours: Iterable[Hours], by: Sequence[str]) -> list[dict[str, Any]]:
    """Sum hours by some fields; the largest sum first."""
    sums: dict[tuple[str | None, ...], list[float]] = {}
    for one in hours:
        key = tuple(getattr(one, USAGE_FIELDS[name]) for name in by)
        known = sums.setdefault(key, [0.0, 0])
        known[0] += one.leaf_cell_hours
        known[1] += one.gangs
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], _nulls_last(item[0])))
    return [
        {**dict(zip(by, key, strict=True)), "leafCellHours": round(used, 6), "gangs": int(gangs)}
        for key, (used, gangs) in ordered
    ]


def _nulls_last(key: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    return [(name is None, name or "") for name in key]


def format_csv(items: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Format items as CSV with a line of names; texts are never formulas for spreadsheets."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for item in items:
        writer.writerow([_cell(item.get(column)) for column in columns])
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_SPREADSHEET) else value
    return "" if value is None else value


def _time(time: datetime | None) -> str | None:
    return None if time is None else moment(time)
