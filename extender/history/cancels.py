"""Runs that a user cancelled: the rows of deletions that belong to runs which were deleted.

The webhook writes a row for each deletion by a user, whichever leader sees the pods end. So a run
and its row are put together when they are read.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from extender.runs.model import Ending
from policy.errors import BackendError
from policy.wording import moment
from state.history.facts import GangFacts
from state.history.runs import StoredRun
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind

_MOST_ROWS: Final = 2_000
_LATER: Final = timedelta(minutes=1)
"""The clocks of the webhook and of the API server differ, and a run may be seen to end first."""


async def find_cancels(log: DecisionLog, runs: Sequence[StoredRun]) -> dict[str, dict[str, Any]]:
    """Return who cancelled which of these runs, and why; none if the log cannot be read now."""
    deleted = [one.facts for one in runs if one.facts.outcome == Ending.DELETED]
    spans = {facts.run: span for facts in deleted if (span := _span(facts)) is not None}
    if not spans:
        return {}
    subjects = sorted({name for facts in deleted for name in _names(facts)})
    since, until = min(one for one, _ in spans.values()), max(two for _, two in spans.values())
    try:
        rows = await log.of_kind(
            RowKind.CANCEL, subjects, since=since, until=until, limit=_MOST_ROWS
        )
    except BackendError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for facts in deleted:
        own = [row for row in rows if facts.run in spans and _is_of(row, facts)]
        if own:  # the reason may be on one pod of the gang only
            found[facts.run] = _show(next((row for row in own if row.details.get("why")), own[0]))
    return found


def _span(facts: GangFacts) -> tuple[datetime, datetime] | None:
    if facts.asked_at is None or facts.ended_at is None:
        return None
    return facts.asked_at, facts.ended_at + _LATER


def _names(facts: GangFacts) -> list[str]:
    """Return the subjects that rows about a run may have: its gang, or its workload."""
    namespace = facts.gang.partition("/")[0]
    workload = (facts.workload or "").rpartition("/")[2]
    return [facts.gang, *([f"{namespace}/{workload}"] if workload else ())]


def _is_of(row: DecisionRecord, facts: GangFacts) -> bool:
    since, until = _span(facts) or (row.at, row.at)
    if not since <= row.at <= until or row.subject not in _names(facts):
        return False
    workload = row.details.get("workloadUid")
    return workload == facts.workload_uid if workload else row.subject == facts.gang


def _show(row: DecisionRecord) -> dict[str, Any]:
    why = row.details.get("why")
    return {
        "user": row.details.get("user"),
        **({"why": why} if why else {}),
        "at": moment(row.at),
        "reason": row.reason,
    }
