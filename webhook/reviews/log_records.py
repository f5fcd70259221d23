"""Rows of the decision log about admissions. Pure."""

from datetime import datetime
from typing import Any

from state.log.records import DecisionRecord, Kind, LoggedDocument
from webhook.admission.verdict import Request, Verdict


def build_record(
    verdict: Verdict,
    request: Request,
    *,
    at: datetime,
    seconds: float,
    policy_hash: str,
    documents: tuple[LoggedDocument, ...],
) -> DecisionRecord:
    """Write down who asked for what, what was decided and why, and by which policy.

    The policy itself travels with the first row that was decided by it.
    """
    submission = request.submission
    return DecisionRecord(
        at=at,
        service="webhook",
        kind=Kind.ADMISSION,
        subject=str(submission.gang),
        outcome=verdict.outcome,
        reason=" ".join(verdict.explain()),
        policy_version=request.policy.version,
        latency_seconds=seconds,
        details={
            "decision": str(verdict.decision),
            "user": submission.user,
            "group": request.group.name if request.group else None,
            "vc": submission.vc,
            "requestedClass": submission.requested_class,
            "class": verdict.final_class,
            "leafCount": submission.leaf_count,
        },
        inputs={"policy": policy_hash, **_inputs(verdict, request)},
        documents=documents,
    )


def _inputs(verdict: Verdict, request: Request) -> dict[str, Any]:
    """Keep what the rules looked at and `details` does not have: enough to decide again."""
    submission, usage = request.submission, verdict.admission.rules.usage
    return {
        "groups": list(submission.groups),
        "gangSize": submission.gang_size,
        "leafType": submission.leaf_type,
        "labels": dict(submission.labels),
        "usage": None if usage is None else [usage.occupied, usage.occupied_high],
    }
