"""The rows of admissions in the decision log. Pure."""

from datetime import datetime
from typing import Any

from state.log.records import DecisionRecord, LoggedDocument, RowKind
from webhook.admission.charge_request import ChargeRequest
from webhook.admission.gang_decision import GangDecision
from webhook.admission.wording import explain


def build_record(
    decision: GangDecision,
    request: ChargeRequest,
    *,
    at: datetime,
    seconds: float,
    policy_hash: str,
    documents: tuple[LoggedDocument, ...],
) -> DecisionRecord:
    """Build the row: who asked for what, what was decided and why, and by which policy.

    The first row decided by a policy carries the policy itself.
    """
    submission = request.submission
    return DecisionRecord(
        at=at,
        service="webhook",
        kind=RowKind.ADMISSION,
        subject=str(submission.gang),
        outcome=decision.outcome,
        reason=" ".join(explain(decision)),
        policy_version=request.policy.version,
        latency_seconds=seconds,
        details={
            "decision": str(decision.id),
            "user": submission.user,
            "group": request.group_name,
            "vc": submission.vc,
            "requestedClass": submission.requested_class,
            "class": decision.final_class,
            "leafCount": submission.leaf_count,
        },
        inputs={"policy": policy_hash, **_inputs(decision, request)},
        documents=documents,
    )


def _inputs(decision: GangDecision, request: ChargeRequest) -> dict[str, Any]:
    """Return what the rules read beside `details`: enough to replay the decision."""
    submission, usage = request.submission, decision.admission.rules.usage
    return {
        "groups": list(submission.groups),
        "gangSize": submission.gang_size,
        "leafType": submission.leaf_type,
        "labels": dict(submission.labels),
        "usage": None if usage is None else [usage.occupied, usage.occupied_high],
    }
